package controllers

import (
	"context"
	"fmt"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// simulatedNode is the node of pods in a cluster without nodes.
const simulatedNode = "apitest"

// reconcilePod simulates the scheduler and kubelet: it binds a pod, starts its containers at once, completes it unless it is
// restarted always, and ends its termination.
func (c *Controller) reconcilePod(ctx context.Context, key store.Key, pod object) error {
	switch spec := nested.Map(pod, "spec"); {
	case isDeleting(pod):
		return c.delete(ctx, key, uidOf(pod), object{"gracePeriodSeconds": int64(0)})
	case isFinished(pod) || len(nested.Maps(spec, "schedulingGates")) > 0:
		return nil
	case nested.String(spec, "nodeName") == "":
		return c.bind(ctx, key)
	}
	phase := nested.String(pod, "status", "phase")
	if phase == "" || phase == "Pending" {
		return c.startPod(ctx, key, pod)
	}
	if phase == "Running" && nested.String(pod, "spec", "restartPolicy") != "Always" {
		return c.finishPod(ctx, key, pod)
	}
	return nil
}

// bind assigns a pod to the first node, or to simulatedNode in a cluster without nodes.
func (c *Controller) bind(ctx context.Context, key store.Key) error {
	node := simulatedNode
	nodes, _, err := c.Store.List("", "nodes", "", 0)
	if err != nil {
		return err
	}
	for _, candidate := range nodes {
		if !nested.Bool(candidate, "spec", "unschedulable") {
			node = nameOf(candidate)
			break
		}
	}
	request, err := c.request(key, "binding")
	if err != nil {
		return err
	}
	_, err = c.Writer.Create(ctx, request, write.Body{Object: object{
		"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": key.Name, "namespace": key.Namespace},
		"target": object{"apiVersion": "v1", "kind": "Node", "name": node},
	}})
	return err
}

func (c *Controller) startPod(ctx context.Context, key store.Key, pod object) error {
	changed := copyOf(pod)
	now := c.timestamp()
	status := nested.EnsureMap(changed, "status")
	c.lastIP++
	ip := fmt.Sprintf("10.244.%d.%d", c.lastIP/250%250, c.lastIP%250+2)
	status["phase"] = "Running"
	status["startTime"] = now
	status["observedGeneration"] = nested.Map(pod, "metadata")["generation"]
	status["hostIP"] = "192.168.0.1"
	status["hostIPs"] = []any{object{"ip": "192.168.0.1"}}
	status["podIP"] = ip
	status["podIPs"] = []any{object{"ip": ip}}
	for _, kind := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		c.setPodCondition(status, kind, "True", "", now)
	}
	spec := nested.Map(pod, "spec")
	status["initContainerStatuses"] = c.containerStatuses(nested.Maps(spec, "initContainers"), object{"terminated": object{
		"exitCode": int64(0), "reason": "Completed", "startedAt": now, "finishedAt": now,
	}}, true)
	status["containerStatuses"] = c.containerStatuses(nested.Maps(spec, "containers"), object{"running": object{"startedAt": now}}, true)
	return c.update(ctx, key, "status", changed, pod)
}

func (c *Controller) finishPod(ctx context.Context, key store.Key, pod object) error {
	changed := copyOf(pod)
	now := c.timestamp()
	status := nested.EnsureMap(changed, "status")
	status["phase"] = "Succeeded"
	for _, kind := range []string{"Ready", "ContainersReady"} {
		c.setPodCondition(status, kind, "False", "PodCompleted", now)
	}
	status["containerStatuses"] = c.containerStatuses(nested.Maps(pod, "spec", "containers"), object{"terminated": object{
		"exitCode": int64(0), "reason": "Completed", "startedAt": nested.String(status, "startTime"), "finishedAt": now,
	}}, false)
	return c.update(ctx, key, "status", changed, pod)
}

// setPodCondition sets a condition of a pod, with lastProbeTime and without an empty reason.
func (c *Controller) setPodCondition(status object, kind, value, reason, now string) {
	next := object{"type": kind, "status": value, "lastProbeTime": nil, "lastTransitionTime": now}
	if reason != "" {
		next["reason"] = reason
	}
	conditions := nested.Slice(status, "conditions")
	for i, one := range conditions {
		if one, _ := one.(object); nested.String(one, "type") == kind {
			if nested.String(one, "status") != value {
				conditions[i] = next
			}
			return
		}
	}
	status["conditions"] = append(conditions, next)
}

func (c *Controller) containerStatuses(containers []object, state object, ready bool) []any {
	statuses := make([]any, 0, len(containers))
	for _, container := range containers {
		image := nested.String(container, "image")
		_, running := state["running"]
		statuses = append(statuses, object{
			"name": nested.String(container, "name"), "image": image, "imageID": image + "@sha256:" + strings.Repeat("0", 64),
			"containerID": "apitest://" + nested.String(container, "name"), "ready": ready, "started": running, "restartCount": int64(0), "state": state,
		})
	}
	return statuses
}
