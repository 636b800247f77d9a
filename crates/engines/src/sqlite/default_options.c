/*
** A second copy of SQLite in the same program, compiled with no options at all.
**
** Every function of the interface is made static, so that no name collides with the first copy;
** the one thing visible from outside is a look-up from name to function. What is looked up, and
** how it is called, is src/sqlite/functions.rs's business.
*/
#define SQLITE_API static
#define SQLITE_EXTERN
#include "sqlite3.c"

typedef void (*SqlitmusFunction)(void);

#define FUNCTION(name) { #name, (SqlitmusFunction)name }

static const struct {
  const char *name;
  SqlitmusFunction function;
} sqlitmus_functions[] = {
  FUNCTION(sqlite3_backup_finish),
  FUNCTION(sqlite3_backup_init),
  FUNCTION(sqlite3_backup_pagecount),
  FUNCTION(sqlite3_backup_step),
  FUNCTION(sqlite3_bind_blob64),
  FUNCTION(sqlite3_bind_int64),
  FUNCTION(sqlite3_bind_text),
  FUNCTION(sqlite3_blob_bytes),
  FUNCTION(sqlite3_blob_close),
  FUNCTION(sqlite3_blob_open),
  FUNCTION(sqlite3_blob_read),
  FUNCTION(sqlite3_blob_reopen),
  FUNCTION(sqlite3_blob_write),
  FUNCTION(sqlite3_busy_timeout),
  FUNCTION(sqlite3_changes),
  FUNCTION(sqlite3_clear_bindings),
  FUNCTION(sqlite3_close),
  FUNCTION(sqlite3_column_blob),
  FUNCTION(sqlite3_column_bytes),
  FUNCTION(sqlite3_column_double),
  FUNCTION(sqlite3_column_int64),
  FUNCTION(sqlite3_column_text),
  FUNCTION(sqlite3_compileoption_get),
  FUNCTION(sqlite3_config),
  FUNCTION(sqlite3_db_status),
  FUNCTION(sqlite3_errmsg),
  FUNCTION(sqlite3_exec),
  FUNCTION(sqlite3_extended_errcode),
  FUNCTION(sqlite3_finalize),
  FUNCTION(sqlite3_get_autocommit),
  FUNCTION(sqlite3_initialize),
  FUNCTION(sqlite3_libversion),
  FUNCTION(sqlite3_open_v2),
  FUNCTION(sqlite3_prepare_v2),
  FUNCTION(sqlite3_reset),
  FUNCTION(sqlite3_sourceid),
  FUNCTION(sqlite3_status64),
  FUNCTION(sqlite3_step),
  FUNCTION(sqlite3_threadsafe),
  FUNCTION(sqlite3_wal_checkpoint_v2),
};

/* The function of that name, or a null pointer. */
SqlitmusFunction sqlitmus_default_options_function(const char *name){
  unsigned int i;
  for(i=0; i<sizeof(sqlitmus_functions)/sizeof(sqlitmus_functions[0]); i++){
    if( strcmp(sqlitmus_functions[i].name, name)==0 ) return sqlitmus_functions[i].function;
  }
  return 0;
}
