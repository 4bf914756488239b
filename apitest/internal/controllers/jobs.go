package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// reconcileJob runs pods of a job until enough have succeeded or more than backoffLimit have failed.
func (c *Controller) reconcileJob(ctx context.Context, key store.Key, job object) error {
	if nested.HasCondition(job, "Complete") || nested.HasCondition(job, "Failed") {
		return nil
	}
	spec := nested.Map(job, "spec")
	all, active := c.podsOf(job)
	succeeded := int64(0)
	failed := int64(0)
	done := map[string]bool{}
	for _, pod := range all {
		switch nested.String(pod, "status", "phase") {
		case "Succeeded":
			succeeded++
			done[completionIndex(pod)] = true
		case "Failed":
			failed++
		}
	}
	parallelism := nested.Int64(spec, "parallelism")
	completions, fixed := spec["completions"].(int64)
	if !fixed { // work queue: complete after the first success, when no pod is active
		completions = max(1, succeeded+int64(len(active)))
	}
	changed := copyOf(job)
	now := c.timestamp()
	status := nested.EnsureMap(changed, "status")
	switch {
	case nested.Bool(spec, "suspend"):
		setJobCondition(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
	case failed > nested.Int64(spec, "backoffLimit"):
		for _, kind := range []string{"FailureTarget", "Failed"} {
			setJobCondition(status, kind, "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
		}
	case succeeded >= completions:
		for _, kind := range []string{"SuccessCriteriaMet", "Complete"} {
			setJobCondition(status, kind, "True", "CompletionsReached", "Reached expected number of succeeded pods", now)
		}
		status["completionTime"] = now
	default:
		if status["startTime"] == nil {
			status["startTime"] = now
		}
		wanted := min(parallelism, completions-succeeded)
		for range wanted - int64(len(active)) {
			if err := c.createJobPod(ctx, job, active, done); err != nil {
				return err
			}
		}
	}
	_, active = c.podsOf(job)
	ready, _ := c.countReady(key, active, 0)
	setCounts(status, map[string]int64{"active": int64(len(active)), "succeeded": succeeded, "failed": failed})
	status["ready"] = ready
	status["terminating"] = int64(0)
	status["uncountedTerminatedPods"] = object{}
	return c.update(ctx, key, "status", changed, job)
}

// completionIndex returns the index of a pod of an Indexed job, otherwise "".
func completionIndex(pod object) string {
	return nested.String(pod, "metadata", "annotations", "batch.kubernetes.io/job-completion-index")
}

func (c *Controller) createJobPod(ctx context.Context, job object, active []object, done map[string]bool) error {
	pod := podFromTemplate(job, nested.Map(job, "spec", "template"), nil)
	metadata := nested.EnsureMap(pod, "metadata")
	metadata["generateName"] = nameOf(job) + "-"
	if nested.String(job, "spec", "completionMode") == "Indexed" {
		index := 0
		for taken := func(i string) bool {
			return done[i] || slices.ContainsFunc(active, func(pod object) bool { return completionIndex(pod) == i })
		}; taken(fmt.Sprint(index)); index++ {
		}
		done[fmt.Sprint(index)] = true
		nested.EnsureMap(metadata, "annotations")["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(index)
		nested.EnsureMap(metadata, "labels")["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(index)
		metadata["generateName"] = fmt.Sprintf("%s-%d-", nameOf(job), index)
	}
	return c.createPod(ctx, job, pod)
}

// setJobCondition sets a condition of a job, including lastProbeTime.
func setJobCondition(status object, kind, value, reason, message, now string) {
	setCondition(status, kind, value, reason, message, now, false)
	for _, one := range nested.Maps(status, "conditions") {
		if nested.String(one, "type") == kind && one["lastProbeTime"] == nil {
			one["lastProbeTime"] = now
		}
	}
}
