package apitest

import (
	"context"
	"slices"

	"github.com/anykind/anykind/apitest/internal/controllers"
)

// Controllers are the simulated controllers of a cluster; see Options.Controllers. They write as system:kube-controller-manager
// and end with the server. They take no time: a rollout is complete as soon as its writes are.
type Controllers uint

// The controllers. To test with pods in states other than running, leave out SimulatedKubelet and write their status.
const (
	// GarbageCollection deletes the dependents of deleted owners, and implements foreground deletion and orphaning.
	GarbageCollection Controllers = 1 << iota
	// NamespaceDeletion empties and removes terminating namespaces.
	NamespaceDeletion
	// ServiceAccounts creates the ServiceAccount default and the ConfigMap kube-root-ca.crt in each namespace.
	ServiceAccounts
	// Workloads reconciles Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs down to their pods. Rolling updates keep
	// within the strategy's limits. Their status has the fields read by kubectl rollout status. CronJobs, HorizontalPodAutoscalers
	// and ReplicationControllers are not simulated.
	Workloads
	// SimulatedKubelet assigns pods to the first node, or to the node "apitest" in a cluster without nodes. Pods become running and
	// ready, or succeeded if their restart policy is not Always. Deleted pods terminate.
	SimulatedKubelet

	// AllControllers enables all controllers.
	AllControllers = GarbageCollection | NamespaceDeletion | ServiceAccounts | Workloads | SimulatedKubelet
)

// startControllers runs the controllers of Options.Controllers until the server is closed.
func (s *Server) startControllers() error {
	set := s.options.Controllers
	if set == 0 {
		return nil
	}
	authority, err := sharedAuthority()
	if err != nil {
		return err
	}
	config := controllers.Config{
		Store: s.store, Registry: s.registry, Writer: s.writer, Now: s.clock.Now, Certificate: authority.caPEM,
		GarbageCollection: set&GarbageCollection != 0, Namespaces: set&NamespaceDeletion != 0, ServiceAccounts: set&ServiceAccounts != 0,
		Workloads: set&Workloads != 0, Pods: set&SimulatedKubelet != 0,
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		controllers.Run(ctx, config)
	}()
	s.onClose = slices.Insert(s.onClose, 0, func() {
		cancel()
		<-done
	})
	return nil
}
