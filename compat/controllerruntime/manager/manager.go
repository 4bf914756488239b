// Package manager configures managers and clusters of controller-runtime for anykind. It is separate from package
// controllerruntime, since controller-runtime's package manager brings webhooks, metrics and net/http/pprof into a program.
package manager

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/anykind/anykind/compat/controllerruntime"
)

// Configure returns the arguments of ctrl.NewManager for a manager over anykind:
//
//	mgr, err := ctrl.NewManager(manager.Configure(from, ctrl.Options{LeaderElection: true, …}))
//
// In the returned options, NewClient, NewCache and MapperProvider default to the methods of from; set fields stay. The
// config is from.Config(): the manager's API reader, events, leader election, metrics authorization and the clients of
// mgr.GetConfig() send requests over the same connection. Options.LeaderElectionConfig, if set, is a separate connection.
func Configure(from *controllerruntime.Constructors, options manager.Options) (*rest.Config, manager.Options) {
	if options.NewClient == nil {
		options.NewClient = from.NewClient
	}
	if options.NewCache == nil {
		options.NewCache = from.NewCache
	}
	if options.MapperProvider == nil {
		options.MapperProvider = from.MapperProvider
	}
	return from.Config(), options
}

// ConfigureCluster returns the arguments of cluster.New for a cluster over anykind. Further options follow the returned option:
//
//	config, overAnykind := manager.ConfigureCluster(from)
//	remote, err := cluster.New(config, overAnykind, func(o *cluster.Options) { o.Scheme = scheme })
func ConfigureCluster(from *controllerruntime.Constructors) (*rest.Config, cluster.Option) {
	return from.Config(), func(options *cluster.Options) {
		options.NewClient = from.NewClient
		options.NewCache = from.NewCache
		options.MapperProvider = from.MapperProvider
	}
}
