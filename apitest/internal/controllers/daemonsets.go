package controllers

import (
	"context"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// reconcileDaemonSet runs a pod of the set on each node matching its node selector.
func (c *Controller) reconcileDaemonSet(ctx context.Context, key store.Key, set object) error {
	revision, err := c.revisionName(ctx, set)
	if err != nil {
		return err
	}
	hash := strings.TrimPrefix(revision, key.Name+"-")
	nodes, _, err := c.Store.List("", "nodes", "", 0)
	if err != nil {
		return err
	}
	_, active := c.podsOf(set)
	byNode := map[string]object{}
	for _, pod := range active {
		byNode[nested.String(pod, "spec", "nodeName")] = pod
	}
	wanted := map[string]bool{}
	updated := int64(0)
	rolling := nested.String(set, "spec", "updateStrategy", "type") == "RollingUpdate"
	for _, node := range nodes {
		if !selectsNode(set, node) {
			continue
		}
		name := nameOf(node)
		wanted[name] = true
		pod := byNode[name]
		switch {
		case pod == nil:
			pod = podFromTemplate(set, nested.Map(set, "spec", "template"), map[string]string{revisionLabel: hash})
			nested.EnsureMap(pod, "metadata")["generateName"] = key.Name + "-"
			nested.Map(pod, "spec")["nodeName"] = name
			err = c.createPod(ctx, set, pod)
		case nested.String(pod, "metadata", "labels", revisionLabel) == hash:
			updated++
		case rolling:
			err = c.delete(ctx, podKey(pod), uidOf(pod), nil)
		}
		if err != nil {
			return err
		}
	}
	for name, pod := range byNode {
		if !wanted[name] {
			if err := c.delete(ctx, podKey(pod), uidOf(pod), nil); err != nil {
				return err
			}
		}
	}
	return c.daemonSetStatus(ctx, key, set, int64(len(wanted)), updated)
}

func selectsNode(set, node object) bool {
	labels := nested.Map(node, "metadata", "labels")
	for name, value := range nested.Map(set, "spec", "template", "spec", "nodeSelector") {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func (c *Controller) daemonSetStatus(ctx context.Context, key store.Key, set object, wanted, updated int64) error {
	_, active := c.podsOf(set)
	changed := copyOf(set)
	status := nested.EnsureMap(changed, "status")
	ready, available := c.countReady(key, active, nested.Int64(set, "spec", "minReadySeconds"))
	status["observedGeneration"] = nested.Map(set, "metadata")["generation"]
	status["currentNumberScheduled"] = int64(len(active))
	status["desiredNumberScheduled"] = wanted
	status["numberMisscheduled"] = int64(0)
	status["numberReady"] = ready
	setCounts(status, map[string]int64{"numberAvailable": available, "numberUnavailable": max(0, wanted-available), "updatedNumberScheduled": updated})
	return c.update(ctx, key, "status", changed, set)
}
