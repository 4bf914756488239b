package builtin

import (
	"math"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func appsDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/apps/v1.Deployment":  defaultDeployment,
		"api/apps/v1.StatefulSet": defaultStatefulSet,
		"api/apps/v1.DaemonSet": func(set object) {
			spec := nested.EnsureMap(set, "spec")
			strategy := nested.EnsureMap(spec, "updateStrategy")
			setIfAbsent(strategy, "type", "RollingUpdate")
			if nested.String(strategy, "type") == "RollingUpdate" {
				setIfAbsent(nested.EnsureMap(strategy, "rollingUpdate"), "maxUnavailable", int64(1))
				setIfAbsent(nested.EnsureMap(strategy, "rollingUpdate"), "maxSurge", int64(0))
			}
			setIfAbsent(spec, "revisionHistoryLimit", int64(10))
		},
		"api/apps/v1.ReplicaSet": func(set object) { setIfAbsent(nested.EnsureMap(set, "spec"), "replicas", int64(1)) },
	}
}

func defaultDeployment(deployment object) {
	spec := nested.EnsureMap(deployment, "spec")
	setIfAbsent(spec, "replicas", int64(1))
	strategy := nested.EnsureMap(spec, "strategy")
	setIfAbsent(strategy, "type", "RollingUpdate")
	if nested.String(strategy, "type") == "RollingUpdate" {
		setIfAbsent(nested.EnsureMap(strategy, "rollingUpdate"), "maxUnavailable", "25%")
		setIfAbsent(nested.EnsureMap(strategy, "rollingUpdate"), "maxSurge", "25%")
	}
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	setIfAbsent(spec, "progressDeadlineSeconds", int64(600))
}

func defaultStatefulSet(set object) {
	spec := nested.EnsureMap(set, "spec")
	setIfAbsent(spec, "podManagementPolicy", "OrderedReady")
	strategy := nested.EnsureMap(spec, "updateStrategy")
	if nested.String(strategy, "type") == "" {
		strategy["type"] = "RollingUpdate"
		nested.EnsureMap(strategy, "rollingUpdate")
	}
	if rolling := nested.Map(strategy, "rollingUpdate"); rolling != nil && nested.String(strategy, "type") == "RollingUpdate" {
		setIfAbsent(rolling, "partition", int64(0))
	}
	retention := nested.EnsureMap(spec, "persistentVolumeClaimRetentionPolicy")
	setIfAbsent(retention, "whenDeleted", "Retain")
	setIfAbsent(retention, "whenScaled", "Retain")
	setIfAbsent(spec, "replicas", int64(1))
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	for _, claim := range nested.Maps(spec, "volumeClaimTemplates") {
		setIfAbsent(claim, "apiVersion", "v1")
		setIfAbsent(claim, "kind", "PersistentVolumeClaim")
	}
}

func batchDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/batch/v1.Job": defaultJob,
		"api/batch/v1.CronJob": func(cron object) {
			spec := nested.EnsureMap(cron, "spec")
			setIfAbsent(spec, "concurrencyPolicy", "Allow")
			setIfAbsent(spec, "suspend", false)
			setIfAbsent(spec, "successfulJobsHistoryLimit", int64(3))
			setIfAbsent(spec, "failedJobsHistoryLimit", int64(1))
		},
		"api/batch/v1.PodFailurePolicyOnPodConditionsPattern": func(pattern object) { setIfAbsent(pattern, "status", "True") },
	}
}

func defaultJob(job object) {
	spec := nested.EnsureMap(job, "spec")
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	setIfAbsent(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		setIfAbsent(spec, "backoffLimit", int64(math.MaxInt32))
	}
	setIfAbsent(spec, "backoffLimit", int64(6))
	if labels := nested.Map(spec, "template", "metadata", "labels"); len(labels) > 0 {
		setIfAbsent(nested.EnsureMap(job, "metadata"), "labels", labels) // shared map, as in the API server: createJob adds to both
	}
	setIfAbsent(spec, "completionMode", "NonIndexed")
	setIfAbsent(spec, "suspend", false)
	if spec["podFailurePolicy"] != nil {
		setIfAbsent(spec, "podReplacementPolicy", "Failed")
	}
	setIfAbsent(spec, "podReplacementPolicy", "TerminatingOrFailed")
	setIfAbsent(spec, "manualSelector", false)
}
