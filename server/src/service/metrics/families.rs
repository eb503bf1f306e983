//! Families of metrics, as they are written.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
    registry::Unit,
};

/// The name of a family without its unit, its description and its unit.
pub(super) struct Family<'a>(
    pub(super) &'a str,
    pub(super) &'a str,
    pub(super) Option<Unit>,
);

/// Writes families, each once.
#[derive(Debug)]
pub(super) struct Families<'a>(DescriptorEncoder<'a>);

/// Labels: names and values.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

impl<'a> Families<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Writes a gauge with one value.
    pub(super) fn gauge(&mut self, family: &Family<'_>, value: f64) -> fmt::Result {
        self.family(family, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// Writes a gauge with a value for each set of labels.
    pub(super) fn gauges<L: EncodeLabelSet>(
        &mut self,
        family: &Family<'_>,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut encoder = self.family(family, MetricType::Gauge)?;
        for (labels, value) in values {
            encoder.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Writes a counter with one value.
    pub(super) fn counter(&mut self, family: &Family<'_>, value: f64) -> fmt::Result {
        self.family(family, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// Writes a counter with a value for each set of labels.
    pub(super) fn counters<L: EncodeLabelSet>(
        &mut self,
        family: &Family<'_>,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.family(family, MetricType::Counter)?;
        for (labels, value) in values {
            encoder
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes labels that say what the server is.
    pub(super) fn info(
        &mut self,
        family: &Family<'_>,
        labels: &impl EncodeLabelSet,
    ) -> fmt::Result {
        self.family(family, MetricType::Info)?.encode_info(labels)
    }

    /// Writes a metric that encodes itself.
    pub(super) fn kept(&mut self, family: &Family<'_>, metric: &impl EncodeMetric) -> fmt::Result {
        metric.encode(self.family(family, metric.metric_type())?)
    }

    fn family<'s>(
        &'s mut self,
        Family(name, help, unit): &'s Family<'_>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit.as_ref(), kind)
    }
}
