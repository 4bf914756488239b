package main

import (
	"fmt"
	"time"
)

var controllerRuntime = &upstream{
	name: "controller-runtime", module: "sigs.k8s.io/controller-runtime",
	requires: []string{".", "compat", "compat/controllerruntime"},
	patches: []patch{
		// client.New and cache.New return anykind's, if the suite's environment says so.
		replaceText{
			file: "pkg/client/client.go", old: "(Client, error) {\n\t_, c, err := newClient(config, options)\n",
			new: "(Client, error) {\n\tif AnykindNew != nil {\n\t\treturn AnykindNew(config, options)\n\t}\n\t_, c, err := newClient(config, options)\n",
		},
		replaceText{
			file: "pkg/client/watch.go", old: "\tbase, c, err := newClient(config, options)\n",
			new: "\tif AnykindNewWithWatch != nil {\n\t\treturn AnykindNewWithWatch(config, options)\n\t}\n\tbase, c, err := newClient(config, options)\n",
		},
		replaceText{
			file: "pkg/cache/cache.go", old: "\topts, err := defaultOpts(cfg, opts)\n",
			new: "\tif AnykindNew != nil && opts.NewInformer == nil {\n\t\treturn AnykindNew(cfg, opts)\n\t}\n\topts, err := defaultOpts(cfg, opts)\n",
		},
		// envtest's config sends its requests over a connection of anykind.
		replaceText{
			file: "pkg/envtest/server.go",
			old:  "unable to install webhooks onto control plane: %w\", err)\n\t}\n\treturn te.Config, nil\n",
			new:  "unable to install webhooks onto control plane: %w\", err)\n\t}\n\treturn overAnykind(te.Config)\n",
		},
		// Every mapper is anykind's.
		replaceText{
			file: "pkg/client/apiutil/restmapper.go",
			old:  "\tclient, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)\n",
			new:  "\treturn newAnykindRESTMapper(cfg, httpClient)\n}\n\nfunc newLazyRESTMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {\n\tclient, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)\n",
		},
		// client-go's mapper answers a kind in lower case with that spelling, anykind's with the server's.
		serverSpelling("deployment", "Deployment", 3), serverSpelling("pod", "Pod", 1), serverSpelling("driver", "Driver", 10),
		serverSpelling("rider", "Rider", 1),
		// How many requests controller-runtime's mapper makes for which group is its own affair.
		dropAssertions{file: "pkg/client/apiutil/restmapper_test.go", actual: "crt.GetRequestCount()", count: 56},
	},
}

// serverSpelling changes the kind that the tests of the RESTMapper expect.
func serverSpelling(old, kind string, count int) replaceText {
	const assertion = ".GroupVersionKind.Kind).To(gmg.Equal(%q))"
	return replaceText{
		file: "pkg/client/apiutil/restmapper_test.go", count: count, old: fmt.Sprintf(assertion, old), new: fmt.Sprintf(assertion, kind),
	}
}

var clientGo = &upstream{
	name: "client-go", module: "k8s.io/client-go", tests: []string{"dynamic"},
	requires: []string{".", "compat"},
	patches: []patch{
		replaceText{file: "dynamic/client_test.go", old: "package dynamic\n", new: "package dynamic_test\n\nimport . \"k8s.io/client-go/dynamic\"\n"},
		replaceCalls{file: "dynamic/client_test.go", old: "NewForConfig", new: "newOverAnykind", count: 3},
		replaceCalls{file: "dynamic/golden_test.go", old: "dynamic.NewForConfig", new: "newOverAnykind", count: 2},
		replaceText{file: "dynamic/dynamicinformer/informer_test.go", old: "\t\"k8s.io/client-go/dynamic\"\n"},
		replaceCalls{file: "dynamic/dynamicinformer/informer_test.go", old: "dynamic.NewForConfig", new: "newOverAnykind", count: 1},
	},
}

// runtimePackages are controller-runtime's packages with the Go test that runs their specs.
var runtimePackages = []struct {
	pkg, specs string
}{
	{"client", "TestClient"},
	{"client/apiutil", "TestSource"},
	{"cache", "TestSource"},
}

// suites returns the suites in the order of the table.
func suites() []*suite {
	var all []*suite
	clientGoSuite := func(name, pkg, watchList string) {
		all = append(all, &suite{
			name: "client-go/" + name, upstream: clientGo, pkg: pkg, ci: true, timeout: 10 * time.Minute,
			env: []string{"KUBE_FEATURE_WatchListClient=" + watchList}, with: "connection",
		})
	}
	clientGoSuite("dynamic", "./dynamic", "true")
	clientGoSuite("dynamicinformer", "./dynamic/dynamicinformer", "true")
	clientGoSuite("dynamicinformer without WatchList", "./dynamic/dynamicinformer", "false")
	for _, p := range runtimePackages {
		skip := ""
		if p.pkg == "client/apiutil" {
			skip = "/aggregatedDiscovery=false" // on an API server of 2024, which the suite downloads
		}
		all = append(all, &suite{
			name: "controller-runtime/" + p.pkg, skip: skip, upstream: controllerRuntime, pkg: "./pkg/" + p.pkg, specs: p.specs,
			ci:      p.pkg != "cache", // which takes two minutes, and runs in CI with adapters
			timeout: 20 * time.Minute, with: "connection, RESTMapper",
		})
		if p.pkg == "client/apiutil" {
			continue // it makes no client and no cache
		}
		all = append(all, &suite{
			name: "controller-runtime/" + p.pkg + " with adapters", upstream: controllerRuntime, pkg: "./pkg/" + p.pkg,
			specs: p.specs, ci: true, timeout: 20 * time.Minute, env: []string{"SUITE_CLIENT=anykind", "SUITE_CACHE=anykind"},
			with: "connection, RESTMapper, client, cache",
		})
	}
	return all
}
