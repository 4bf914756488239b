package builtin

import "math"

func appsDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/apps/v1.Deployment":  defaultDeployment,
		"api/apps/v1.StatefulSet": defaultStatefulSet,
		"api/apps/v1.DaemonSet": func(set object) {
			spec := ensure(set, "spec")
			strategy := ensure(spec, "updateStrategy")
			setIfAbsent(strategy, "type", "RollingUpdate")
			if text(strategy, "type") == "RollingUpdate" {
				setIfAbsent(ensure(strategy, "rollingUpdate"), "maxUnavailable", int64(1))
				setIfAbsent(ensure(strategy, "rollingUpdate"), "maxSurge", int64(0))
			}
			setIfAbsent(spec, "revisionHistoryLimit", int64(10))
		},
		"api/apps/v1.ReplicaSet": func(set object) { setIfAbsent(ensure(set, "spec"), "replicas", int64(1)) },
	}
}

func defaultDeployment(deployment object) {
	spec := ensure(deployment, "spec")
	setIfAbsent(spec, "replicas", int64(1))
	strategy := ensure(spec, "strategy")
	setIfAbsent(strategy, "type", "RollingUpdate")
	if text(strategy, "type") == "RollingUpdate" {
		setIfAbsent(ensure(strategy, "rollingUpdate"), "maxUnavailable", "25%")
		setIfAbsent(ensure(strategy, "rollingUpdate"), "maxSurge", "25%")
	}
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	setIfAbsent(spec, "progressDeadlineSeconds", int64(600))
}

func defaultStatefulSet(set object) {
	spec := ensure(set, "spec")
	setIfAbsent(spec, "podManagementPolicy", "OrderedReady")
	strategy := ensure(spec, "updateStrategy")
	if text(strategy, "type") == "" {
		strategy["type"] = "RollingUpdate"
		ensure(strategy, "rollingUpdate")
	}
	if rolling := child(strategy, "rollingUpdate"); rolling != nil && text(strategy, "type") == "RollingUpdate" {
		setIfAbsent(rolling, "partition", int64(0))
	}
	retention := ensure(spec, "persistentVolumeClaimRetentionPolicy")
	setIfAbsent(retention, "whenDeleted", "Retain")
	setIfAbsent(retention, "whenScaled", "Retain")
	setIfAbsent(spec, "replicas", int64(1))
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	for _, claim := range objects(spec, "volumeClaimTemplates") {
		setIfAbsent(claim, "apiVersion", "v1")
		setIfAbsent(claim, "kind", "PersistentVolumeClaim")
	}
}

func batchDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/batch/v1.Job": defaultJob,
		"api/batch/v1.CronJob": func(cron object) {
			spec := ensure(cron, "spec")
			setIfAbsent(spec, "concurrencyPolicy", "Allow")
			setIfAbsent(spec, "suspend", false)
			setIfAbsent(spec, "successfulJobsHistoryLimit", int64(3))
			setIfAbsent(spec, "failedJobsHistoryLimit", int64(1))
		},
		"api/batch/v1.PodFailurePolicyOnPodConditionsPattern": func(pattern object) { setIfAbsent(pattern, "status", "True") },
	}
}

func defaultJob(job object) {
	spec := ensure(job, "spec")
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	setIfAbsent(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		setIfAbsent(spec, "backoffLimit", int64(math.MaxInt32))
	}
	setIfAbsent(spec, "backoffLimit", int64(6))
	if labels := child(spec, "template", "metadata", "labels"); len(labels) > 0 {
		setIfAbsent(ensure(job, "metadata"), "labels", labels) // shared map, as in the API server: createJob adds to both
	}
	setIfAbsent(spec, "completionMode", "NonIndexed")
	setIfAbsent(spec, "suspend", false)
	if spec["podFailurePolicy"] != nil {
		setIfAbsent(spec, "podReplacementPolicy", "Failed")
	}
	setIfAbsent(spec, "podReplacementPolicy", "TerminatingOrFailed")
	setIfAbsent(spec, "manualSelector", false)
}
