//! Tests of `ownership`: what is ours can be made, used and removed; what is foreign stays, whatever
//! stands beside it; and every state a crash can leave is put right.

use super::*;
use std::os::unix::fs::symlink;

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary directory");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("list");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into())
            .collect();
        names.sort();
        names
    }
}

fn site(path: &Path) -> Site {
    Site::of(path).expect("a name")
}

/// Writes the sidecar of an interrupted operation.
fn leave_record(path: &Path, state: RecordState, identity: Option<Identity>) -> OwnerRecord {
    let mut record = OwnerRecord::creating("store");
    record.state = state;
    record.identity = identity;
    record
        .write_new(&site(path).sidecar())
        .expect("write record");
    record
}

/// A file of ours.
fn create_file(path: &Path, what: &str) {
    std::fs::write(path, "").expect("write");
    claim_created(path, what).expect("claim");
}

fn identity(path: &Path) -> Option<Identity> {
    Identity::of(&std::fs::symlink_metadata(path).expect("metadata"))
}

fn refusal(path: &Path) -> String {
    let error = remove_owned(path).expect_err("refused");
    assert!(matches!(error, OwnershipError::NotOurs { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn a_directory_of_ours_comes_and_goes() {
    let folder = Folder::new();
    let store = folder.path("store");
    assert_eq!(standing(&store).expect("standing"), Standing::Free);
    create_directory(&store, "store").expect("create");
    assert!(is_ours(&store).expect("standing"));
    assert!(is_ours(&folder.path("store/")).expect("with a slash"));
    assert_eq!(folder.names(), ["store", "store.sqlitmus-owner"]);

    std::fs::create_dir(store.join("below")).expect("folder");
    std::fs::write(store.join("below/file"), "content").expect("write");
    let counted = count_owned(&store).expect("count");
    assert_eq!((counted.files, counted.directories), (1, 2));
    assert_eq!(remove_owned(&store).expect("remove"), counted);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    let again = remove_owned(&store).expect("nothing to do");
    assert_eq!(again, TreeSize::default());
}

#[test]
fn a_database_goes_with_its_companions_only() {
    let folder = Folder::new();
    let database = folder.path("data.db");
    create_file(&database, "database");
    std::fs::write(&database, "content").expect("same file");
    for name in ["data.db-wal", "data.db-shm", "data.db-other", "data.dbx"] {
        std::fs::write(folder.path(name), "x").expect("write");
    }
    symlink("data.dbx", folder.path("data.db-journal")).expect("link");
    let removed = remove_owned(&database).expect("remove");
    assert_eq!(removed.files, 3);
    assert_eq!(
        folder.names(),
        ["data.db-journal", "data.db-other", "data.dbx"]
    );
}

#[test]
fn an_existing_path_is_never_taken() {
    let folder = Folder::new();
    let foreign = folder.path("foreign");
    std::fs::create_dir(&foreign).expect("folder");
    let error = create_directory(&foreign, "store").expect_err("exists");
    assert!(matches!(error, OwnershipError::NotOurs { .. }), "{error:?}");
    assert_eq!(folder.names(), ["foreign"], "nothing is left behind");

    let ours = folder.path("ours");
    create_file(&ours, "run file");
    let error = create_directory(&ours, "store").expect_err("exists");
    assert!(
        error.to_string().contains("(run file, made by sqlitmus "),
        "{error}"
    );
}

#[test]
fn a_path_without_a_sidecar_is_foreign() {
    let folder = Folder::new();
    let path = folder.path("data.db");
    create_file(&path, "database");
    std::fs::remove_file(site(&path).sidecar()).expect("remove sidecar");
    assert!(refusal(&path).contains("no owner file"));
    assert_eq!(folder.names(), ["data.db"]);
}

#[test]
fn a_foreign_object_under_our_name_stays() {
    let folder = Folder::new();
    let path = folder.path("store");
    create_directory(&path, "store").expect("create");
    std::fs::rename(&path, folder.path("moved")).expect("rename");
    std::fs::create_dir(&path).expect("foreign directory");
    std::fs::write(path.join("keep"), "keep").expect("write");
    assert!(refusal(&path).contains("not the object"));
    assert!(matches!(
        recover(&path).expect("recover"),
        Standing::Foreign { .. }
    ));
    assert!(path.join("keep").exists());
    assert!(folder.path("moved").exists());
}

#[test]
fn a_link_planted_under_our_name_stays_and_so_does_its_target() {
    let folder = Folder::new();
    let target = folder.path("target");
    std::fs::create_dir(&target).expect("folder");
    std::fs::write(target.join("keep"), "keep").expect("write");
    let path = folder.path("store");
    create_directory(&path, "store").expect("create");
    std::fs::remove_dir(&path).expect("remove");
    symlink(&target, &path).expect("link");
    refusal(&path);
    refusal(&folder.path("store/"));
    assert!(create_directory(&path, "store").is_err());

    // Even a record with the target's identity does not make the link ours.
    std::fs::remove_file(site(&path).sidecar()).expect("remove sidecar");
    leave_record(&path, RecordState::Removing, identity(&target));
    refusal(&path);
    assert!(target.join("keep").exists());
    assert!(std::fs::symlink_metadata(&path).expect("link").is_symlink());
}

#[test]
fn a_planted_sidecar_is_never_followed_or_believed() {
    let folder = Folder::new();
    let ours = folder.path("ours");
    create_directory(&ours, "store").expect("create");
    let victim = folder.path("victim");
    std::fs::create_dir(&victim).expect("folder");
    std::fs::write(victim.join("keep"), "keep").expect("write");
    symlink(site(&ours).sidecar(), site(&victim).sidecar()).expect("link");
    assert!(refusal(&victim).contains("symbolic link"));
    std::fs::remove_file(site(&victim).sidecar()).expect("remove link");
    std::fs::copy(site(&ours).sidecar(), site(&victim).sidecar()).expect("copy");
    assert!(refusal(&victim).contains("not the object"));
    assert!(victim.join("keep").exists());

    // A sidecar that is a dangling link, or no record, also blocks creation.
    symlink("nowhere", folder.path("new.sqlitmus-owner")).expect("link");
    assert!(create_directory(&folder.path("new"), "store").is_err());
    assert!(!folder.path("nowhere").exists());
    std::fs::write(folder.path("next.sqlitmus-owner"), "notes").expect("write");
    assert!(create_directory(&folder.path("next"), "store").is_err());
    let notes = std::fs::read_to_string(folder.path("next.sqlitmus-owner"));
    assert_eq!(notes.expect("read"), "notes");
}

#[test]
fn another_users_sidecar_is_not_believed() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = Folder::new();
    let path = folder.path("victim");
    std::fs::write(&path, "keep").expect("write");
    leave_record(&path, RecordState::Ready, identity(&path));
    assert!(is_ours(&path).expect("standing"), "the same user's is");
    std::os::unix::fs::chown(site(&path).sidecar(), Some(12345), None).expect("chown");
    assert!(refusal(&path).contains("another user"));
    // Root may clean up what a user made and claimed.
    std::os::unix::fs::chown(&path, Some(12345), None).expect("chown");
    assert!(is_ours(&path).expect("standing"));
}

#[test]
fn a_creation_interrupted_at_any_point_is_recovered() {
    let folder = Folder::new();
    let path = folder.path("store");

    // After the announcement.
    leave_record(&path, RecordState::Creating, None);
    assert_eq!(standing(&path).expect("standing"), Standing::Unfinished);
    assert_eq!(recover(&path).expect("recover"), Standing::Free);
    assert!(folder.names().is_empty());

    // After the object was made under its random name.
    let record = leave_record(&path, RecordState::Creating, None);
    std::fs::create_dir(site(&path).staged_object(&record)).expect("folder");
    assert_eq!(recover(&path).expect("recover"), Standing::Free);
    assert!(folder.names().is_empty(), "{:?}", folder.names());

    // While the identity was being written.
    let record = leave_record(&path, RecordState::Creating, None);
    let staged = site(&path).staged_object(&record);
    std::fs::create_dir(&staged).expect("folder");
    std::fs::write(site(&path).staged_record(&record), "{").expect("write");
    assert_eq!(recover(&path).expect("recover"), Standing::Free);
    assert!(folder.names().is_empty(), "{:?}", folder.names());

    // Before the object got its own name: creation simply starts again.
    let mut record = leave_record(&path, RecordState::Creating, None);
    let staged = site(&path).staged_object(&record);
    std::fs::create_dir(&staged).expect("folder");
    record.state = RecordState::Ready;
    record.identity = identity(&staged);
    site(&path).replace_record(&record).expect("replace");
    assert_eq!(standing(&path).expect("standing"), Standing::Unfinished);
    create_directory(&path, "store").expect("create anew");
    assert_eq!(folder.names(), ["store", "store.sqlitmus-owner"]);
}

#[test]
fn a_foreign_object_that_meets_an_interrupted_creation_stays() {
    let folder = Folder::new();
    let path = folder.path("store");
    leave_record(&path, RecordState::Creating, None);
    std::fs::create_dir(&path).expect("someone else's");
    refusal(&path);
    assert!(create_directory(&path, "store").is_err());
    assert!(path.exists());
}

#[test]
fn a_removal_interrupted_at_any_point_is_finished() {
    let folder = Folder::new();
    let path = folder.path("data.db");

    // Half-way: the object is still there, but no longer to be used.
    std::fs::write(&path, "x").expect("write");
    std::fs::write(folder.path("data.db-wal"), "x").expect("write");
    leave_record(&path, RecordState::Removing, identity(&path));
    assert!(!is_ours(&path).expect("standing"));
    assert_eq!(recover(&path).expect("recover"), Standing::Free);
    assert!(folder.names().is_empty(), "{:?}", folder.names());

    // The object is gone, the sidecar is not; the next creation clears it away.
    leave_record(&path, RecordState::Removing, None);
    create_directory(&path, "store").expect("create");
    assert!(is_ours(&path).expect("standing"));

    // The user removed the object by hand.
    std::fs::remove_dir(&path).expect("remove");
    remove_owned(&path).expect("only the sidecar is left");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn paths_without_a_name_are_refused() {
    for path in ["", "/", "a/.."] {
        let error = create_directory(Path::new(path), "x").expect_err("no name");
        assert!(matches!(error, OwnershipError::NoName { .. }), "{path}");
    }
}

#[test]
fn what_other_code_made_for_us_can_be_claimed_once() {
    let folder = Folder::new();
    let path = folder.path("one.run");
    assert!(claim_created(&path, "run file").is_err(), "nothing there");
    symlink("nowhere", folder.path("link")).expect("link");
    assert!(claim_created(&folder.path("link"), "run file").is_err());
    assert_eq!(folder.names(), ["link"], "nothing is left behind");

    std::fs::write(&path, "samples").expect("write");
    claim_created(&path, "run file").expect("claim");
    assert!(is_ours(&path).expect("standing"));
    assert!(claim_created(&path, "run file").is_err(), "claimed already");
    remove_owned(&path).expect("remove");
    assert_eq!(folder.names(), ["link"]);
}
