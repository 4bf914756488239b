package manager_test

import (
	"context"
	"fmt"
	"log"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/compat/controllerruntime/manager"
)

// Of a program's own options, Configure sets only the constructors.
func ExampleConfigure() {
	from, err := controllerruntime.FromConfig(context.Background(), &rest.Config{Host: "https://127.0.0.1:6443"}) // ctrl.GetConfigOrDie()
	if err != nil {
		log.Fatal(err)
	}
	config, options := manager.Configure(from, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	// mgr, err := ctrl.NewManager(config, options)
	fmt.Println(config.Host, options.NewCache != nil, options.NewClient != nil, options.MapperProvider != nil, options.Metrics.BindAddress)
	// Output: https://127.0.0.1:6443 true true true 0
}

// A second cluster of a manager.
func ExampleConfigureCluster() {
	from, err := controllerruntime.FromConfig(context.Background(), &rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		log.Fatal(err)
	}
	config, overAnykind := manager.ConfigureCluster(from)
	// second, err := cluster.New(config, overAnykind, func(o *cluster.Options) { o.Scheme = scheme })
	var options cluster.Options
	overAnykind(&options)
	fmt.Println(config.Host, options.NewCache != nil, options.NewClient != nil, options.MapperProvider != nil)
	// Output: https://127.0.0.1:6443 true true true
}
