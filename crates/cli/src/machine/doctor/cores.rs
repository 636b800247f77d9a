//! The cores: how many may be used, how fast they run, whether one is kept free.

use serde::Serialize;

use super::{Check, Judgement, Level};
use crate::machine::control_group::{self, Limit};
use crate::machine::environment::{Environment, NOT_EXPOSED, fact};
use crate::machine::kernel_files::{self, KernelFiles};
use crate::machine::processor::CoreChoice;

/// The check of the cores themselves.
pub const CORES: Check = Check {
    name: "cores",
    why: "The worker needs a core of its own; where a limit on processor time is reached, the kernel \
          stops it in the middle of an operation for tens of milliseconds.",
};

/// The check of their frequency.
pub const FREQUENCY: Check = Check {
    name: "frequency",
    why: "A core that changes its frequency while it is measured changes all figures with it, and the \
          arm that runs after a pause finds a slow core.",
};

/// Cores as this process may use them.
#[derive(Clone, Debug, Serialize)]
pub struct Cores {
    /// Logical cores that are online.
    pub online: Option<u64>,
    /// Those that this process may use.
    pub allowed: Option<u64>,
    /// The control group's limit, in thousandths of a core.
    pub limit_millicores: Option<u64>,
    /// Cores that the scheduler leaves alone (`isolcpus=`).
    pub isolated: Vec<usize>,
    /// Whether two logical cores share one physical core.
    pub simultaneous_multithreading: Option<bool>,
    /// The core that a worker would be pinned to.
    pub worker_core: Option<usize>,
    /// The core that the orchestrator would be pinned to.
    pub orchestrator_core: Option<usize>,
}

impl Cores {
    /// Reads them. To be called before anything is pinned.
    #[must_use]
    pub fn read(files: &KernelFiles, environment: &Environment) -> Self {
        let choice = CoreChoice::of_this_machine();
        let isolated = files.text("/sys/devices/system/cpu/isolated");
        Self {
            online: environment.number(fact::CPU_LOGICAL_CORES),
            allowed: environment.number(fact::CPU_ALLOWED_CORES),
            limit_millicores: match control_group::processor_limit_millicores(files) {
                Limit::Of(millicores) => Some(millicores),
                Limit::Unknown | Limit::Unlimited => None,
            },
            isolated: isolated
                .and_then(|text| kernel_files::number_list(&text))
                .unwrap_or_default(),
            simultaneous_multithreading: files
                .number("/sys/devices/system/cpu/smt/active")
                .map(|active| active == 1),
            worker_core: choice.worker,
            orchestrator_core: choice.orchestrator,
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let number =
            |value: Option<u64>| value.map_or("an unknown number".to_owned(), |n| n.to_string());
        let mut judgement = Judgement::ok(format!(
            "{} of {} cores may be used",
            number(self.allowed),
            number(self.online)
        ));
        if let Some(core) = self.worker_core {
            let isolated = if self.isolated.contains(&core) {
                ", which is isolated"
            } else {
                ""
            };
            judgement = judgement.and(
                Level::Ok,
                &format!("workers are pinned to core {core}{isolated}"),
                "",
            );
        }
        if self.simultaneous_multithreading == Some(true) {
            judgement = judgement.and(Level::Ok, "cores share units (SMT)", "");
        }
        if self.allowed == Some(1) {
            judgement = judgement.and(
                Level::Warning,
                "worker and orchestrator share it",
                "give the machine or container a second core",
            );
        }
        match self.limit_millicores {
            Some(limit) if limit < 1000 => judgement.and(
                Level::Problem,
                &format!(
                    "a control group limits processor time to {:.2} cores",
                    limit as f64 / 1000.0
                ),
                "lift the limit: docker run --cpus 2, CPUQuota=200% in systemd",
            ),
            Some(limit) if limit < 2000 => judgement.and(
                Level::Warning,
                &format!(
                    "a control group limits processor time to {:.2} cores",
                    limit as f64 / 1000.0
                ),
                "raise the limit to two cores or more",
            ),
            _ => judgement,
        }
    }
}

/// What decides the cores' frequency.
#[derive(Clone, Debug, Serialize)]
pub struct Frequency {
    /// The governors in use.
    pub governor: String,
    /// The driver below them.
    pub driver: Option<String>,
    /// Whether cores may run above their nominal frequency while they are cool.
    pub turbo: Option<bool>,
}

impl Frequency {
    /// Reads it.
    #[must_use]
    pub fn read(files: &KernelFiles, environment: &Environment) -> Self {
        let boost = files
            .number("/sys/devices/system/cpu/cpufreq/boost")
            .map(|on| on == 1);
        let no_turbo = files.number("/sys/devices/system/cpu/intel_pstate/no_turbo");
        Self {
            governor: environment.value(fact::CPU_GOVERNOR).to_owned(),
            driver: files.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
            turbo: boost.or(no_turbo.map(|off| off == 0)),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        if self.governor == NOT_EXPOSED {
            return Judgement::new(
                Level::Note,
                "the frequency is not visible from here",
                "nothing can be set here; the noise floor shows whether it matters",
            );
        }
        let turbo = match self.turbo {
            Some(true) => ", turbo on",
            Some(false) => ", turbo off",
            None => "",
        };
        let driver = self.driver.as_deref().unwrap_or("unknown");
        let finding = format!("governor {} (driver {driver}){turbo}", self.governor);
        let advice = "while measuring: sudo cpupower frequency-set --governor performance";
        // These drivers raise the frequency by themselves whatever the governor's name says.
        let by_itself = ["intel_pstate", "amd-pstate-epp"].contains(&driver);
        match self.governor.as_str() {
            "performance" => Judgement::ok(finding),
            _ if by_itself => Judgement::new(Level::Note, finding, advice),
            _ => Judgement::new(Level::Warning, finding, advice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(allowed: u64, limit_millicores: Option<u64>) -> Cores {
        Cores {
            online: Some(4),
            allowed: Some(allowed),
            limit_millicores,
            isolated: vec![3],
            simultaneous_multithreading: Some(true),
            worker_core: Some(3),
            orchestrator_core: Some(0),
        }
    }

    #[test]
    fn too_few_cores_and_limits_are_seen() {
        let judgement = cores(4, None).judge();
        assert_eq!(judgement.level, Level::Ok);
        assert!(judgement.finding.contains("core 3, which is isolated"));
        assert_eq!(cores(1, None).judge().level, Level::Warning);
        assert_eq!(cores(4, Some(1500)).judge().level, Level::Warning);
        assert_eq!(cores(4, Some(500)).judge().level, Level::Problem);
        assert_eq!(cores(4, Some(4000)).judge().level, Level::Ok);
    }

    #[test]
    fn governors_are_judged_by_what_their_driver_does() {
        let frequency = |governor: &str, driver: &str| Frequency {
            governor: governor.to_owned(),
            driver: Some(driver.to_owned()),
            turbo: Some(true),
        };
        assert_eq!(
            frequency("performance", "acpi-cpufreq").judge().level,
            Level::Ok
        );
        assert_eq!(
            frequency("powersave", "intel_pstate").judge().level,
            Level::Note
        );
        assert_eq!(
            frequency("ondemand", "acpi-cpufreq").judge().level,
            Level::Warning
        );
        assert_eq!(
            frequency("performance, powersave", "cppc").judge().level,
            Level::Warning
        );
        assert_eq!(frequency(NOT_EXPOSED, "").judge().level, Level::Note);
    }
}
