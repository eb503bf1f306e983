//! The output policy of a task, in and out.

use heeler_proto::v1;

use crate::{
    service::wire::{check, pattern, refusal::Refusal},
    task::{OnOutputLimit, OutputPolicy},
};

pub(super) fn read(policy: v1::OutputPolicy) -> Result<OutputPolicy, Refusal> {
    let on_limit = check::enumerated("spec.output.on_limit", policy.on_limit)?;
    let by_default = match policy.max_bytes {
        0 => OutputPolicy::default(),
        bytes @ ..OutputPolicy::MIN_MAX_BYTES => {
            let problem = format_args!("is {bytes}, less than 256 KiB");
            return Err(Refusal::field("spec.output.max_bytes", problem));
        }
        bytes => OutputPolicy::with_limit(bytes),
    };
    let head_bytes = policy.head_bytes.unwrap_or(by_default.head_bytes);
    if head_bytes > by_default.max_bytes - OutputPolicy::MIN_TAIL_BYTES {
        return Err(Refusal::field(
            "spec.output.head_bytes",
            "leaves less than 192 KiB of max_bytes for the latest output",
        ));
    }
    Ok(OutputPolicy {
        max_bytes: by_default.max_bytes,
        head_bytes,
        on_limit: match on_limit {
            v1::OutputLimitAction::Unspecified | v1::OutputLimitAction::Rotate => {
                OnOutputLimit::Rotate
            }
            v1::OutputLimitAction::Truncate => OnOutputLimit::Truncate,
            v1::OutputLimitAction::Kill => OnOutputLimit::Kill,
        },
        patterns: pattern::read_all("spec.output.patterns", policy.patterns)?,
    })
}

pub(super) fn show(policy: &OutputPolicy) -> v1::OutputPolicy {
    v1::OutputPolicy {
        max_bytes: policy.max_bytes,
        head_bytes: Some(policy.head_bytes),
        on_limit: match policy.on_limit {
            OnOutputLimit::Rotate => v1::OutputLimitAction::Rotate,
            OnOutputLimit::Truncate => v1::OutputLimitAction::Truncate,
            OnOutputLimit::Kill => v1::OutputLimitAction::Kill,
        }
        .into(),
        patterns: policy.patterns.iter().map(pattern::show).collect(),
    }
}
