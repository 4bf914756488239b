package apitest

import (
	"context"
	"slices"

	"github.com/anykind/anykind/apitest/internal/controllers"
)

// Controllers are parts of a cluster that a server simulates; see Options.Controllers. They write as
// system:kube-controller-manager and end with the server. They take no time: a rollout is done as soon as its writes are.
type Controllers uint

// The controllers. A test that needs pods in other states than running leaves out SimulatedKubelet and writes their status.
const (
	// GarbageCollection deletes the dependents of deleted owners, and does what foreground and orphaning deletions ask for.
	GarbageCollection Controllers = 1 << iota
	// NamespaceDeletion deletes the objects of namespaces that are being deleted, and then those.
	NamespaceDeletion
	// ServiceAccounts creates the service account default and the config map kube-root-ca.crt in each namespace.
	ServiceAccounts
	// Workloads makes deployments create replica sets, and those, stateful sets, daemon sets and jobs pods. Rolling updates keep
	// within the strategy's limits; their status has the fields that kubectl rollout status waits for. Cron jobs, autoscalers and
	// replication controllers are not simulated.
	Workloads
	// SimulatedKubelet assigns pods to the first node, or to the node "apitest" in a cluster without nodes; makes them run and
	// be ready, or succeed if their restart policy is not Always; and ends the termination of those that are deleted.
	SimulatedKubelet

	// AllControllers are all of them.
	AllControllers = GarbageCollection | NamespaceDeletion | ServiceAccounts | Workloads | SimulatedKubelet
)

// startControllers runs the controllers of the options until the server is closed.
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
