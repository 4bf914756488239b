package main

import (
	"fmt"
	"slices"
	"time"
)

var controllerRuntime = &upstream{
	name: "controller-runtime", module: "sigs.k8s.io/controller-runtime", sharesVersions: true,
	requires: []string{".", "compat", "compat/controllerruntime"},
	patches: []patch{
		// manager.New and cluster.New get the arguments that package manager of anykind returns, if the suite's environment says so.
		replaceText{
			file: "pkg/manager/manager.go", old: "\t// Set default values for options fields\n\toptions, err := setOptionsDefaults(config, options)\n",
			new: "\tif AnykindConfigure != nil {\n\t\tvar err error\n\t\tif config, options, err = AnykindConfigure(config, options); err != nil {\n" +
				"\t\t\treturn nil, err\n\t\t}\n\t}\n\toptions, err := setOptionsDefaults(config, options)\n",
		},
		replaceText{
			file: "pkg/cluster/cluster.go", old: "\toriginalConfig := config\n",
			new: "\tconfig, opts, configureErr := configureAnykind(config, opts)\n\tif configureErr != nil {\n\t\treturn nil, configureErr\n\t}\n\toriginalConfig := config\n",
		},
		// GetConfig returns the config of the new arguments. The given one must stay as it is.
		replaceText{
			file: "pkg/manager/manager_test.go", old: "\t\t\t\tExpect(m.GetConfig()).To(Equal(originalCfg))\n",
			new: "\t\t\t\tif AnykindConfigure == nil {\n\t\t\t\t\tExpect(m.GetConfig()).To(Equal(originalCfg))\n\t\t\t\t}\n" +
				"\t\t\t\tExpect(cfg).To(Equal(originalCfg))\n",
		},
		// The suites' own clients and caches are anykind's, too.
		runtimeCalls("client/client_test.go", "client.New", 131), runtimeCalls("client/fieldvalidation_test.go", "client.New", 1),
		runtimeCalls("client/dryrun_test.go", "client.New", 1), runtimeCalls("client/watch_test.go", "client.NewWithWatch", 2),
		runtimeCalls("client/consistency_envtest_test.go", "client.New", 2),
		runtimeCalls("client/consistency_envtest_test.go", "cache.New", 2),
		runtimeCalls("cache/cache_test.go", "client.New", 11), runtimeCalls("cache/cache_test.go", "cache.New", 14),
		replaceText{file: "pkg/cache/cache_test.go", old: "(cache.New, ", new: "(anykind.NewCache, ", count: 7},
		runtimeCalls("cache/informer_cache_test.go", "cache.New", 1), runtimeCalls("builder/controller_test.go", "cache.New", 1),
		runtimeCalls("controller/controllerutil/controllerutil_suite_test.go", "client.New", 1),
		runtimeCalls("webhook/webhook_integration_test.go", "client.New", 1),
		runtimeCalls("source/source_suite_test.go", "cache.New", 1), runtimeCalls("internal/controller/controller_test.go", "cache.New", 5),
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
		// client-go's mapper returns a lower-case kind unchanged, anykind's mapper returns the server's spelling.
		serverSpelling("deployment", "Deployment", 3), serverSpelling("pod", "Pod", 1), serverSpelling("driver", "Driver", 10),
		serverSpelling("rider", "Rider", 1),
		// The number of requests of controller-runtime's mapper is an implementation detail.
		dropAssertions{file: "pkg/client/apiutil/restmapper_test.go", actual: "crt.GetRequestCount()", count: 56},
	},
}

// runtimeCalls replaces calls of client.New, client.NewWithWatch or cache.New by those of the overlay's package anykind.
func runtimeCalls(file, old string, count int) replaceCalls {
	names := map[string]string{"client.New": "NewClient", "client.NewWithWatch": "NewClientWithWatch", "cache.New": "NewCache"}
	return replaceCalls{
		file: "pkg/" + file, old: old, new: "anykind." + names[old], count: count, imports: "sigs.k8s.io/controller-runtime/pkg/anykind",
	}
}

// serverSpelling changes the expected kind in the tests of the RESTMapper.
func serverSpelling(old, kind string, count int) replaceText {
	const assertion = ".GroupVersionKind.Kind).To(gmg.Equal(%q))"
	return replaceText{
		file: "pkg/client/apiutil/restmapper_test.go", count: count, old: fmt.Sprintf(assertion, old), new: fmt.Sprintf(assertion, kind),
	}
}

var clientGo = &upstream{
	name: "client-go", module: "k8s.io/client-go", tests: []string{"dynamic"}, sharesVersions: true,
	requires: []string{".", "compat"},
	patches: []patch{
		replaceText{file: "dynamic/client_test.go", old: "package dynamic\n", new: "package dynamic_test\n\nimport . \"k8s.io/client-go/dynamic\"\n"},
		replaceCalls{file: "dynamic/client_test.go", old: "NewForConfig", new: "newOverAnykind", count: 3},
		replaceCalls{file: "dynamic/golden_test.go", old: "dynamic.NewForConfig", new: "newOverAnykind", count: 2},
		replaceText{file: informerTest, old: "\t\"k8s.io/client-go/dynamic\"\n"},
		replaceCalls{file: informerTest, old: "dynamic.NewForConfig", new: "newOverAnykind", count: 1},
		replaceCalls{file: informerTest, old: "dynamicinformer.NewDynamicSharedInformerFactory", new: "newFactory", count: 1},
		replaceCalls{file: informerTest, old: "dynamicinformer.NewFilteredDynamicSharedInformerFactory", new: "newFilteredFactory", count: 3},
	},
}

const informerTest = "dynamic/dynamicinformer/informer_test.go"

// fluxSSA is Flux's package for applying objects. Its later versions require a later version of Go than this repository.
var fluxSSA = &upstream{
	name: "flux-ssa", module: "github.com/fluxcd/pkg/ssa", sharesVersions: true,
	files: []string{"programs"}, requires: []string{".", "compat", "compat/controllerruntime"},
	patches: []patch{
		replaceCalls{
			file: "main_test.go", old: "testEnv.Start", new: "anykind.Over(testEnv).Start", count: 1, imports: "github.com/fluxcd/pkg/ssa" + overlayPackage,
		},
		replaceText{file: "main_test.go", old: "\t\"sigs.k8s.io/controller-runtime/pkg/client/apiutil\"\n"},
		replaceCalls{file: "main_test.go", old: "apiutil.NewDynamicRESTMapper", new: "controllerruntime.MapperProvider", count: 1},
		anykindClients("main_test.go", 1), anykindClients("manager_apply_test.go", 2), anykindClients("jsondiff/suite_test.go", 1),
	},
}

// helm is Helm's library. Its own tests of package kube use fakes; a test in overlay/helm starts an API server.
var helm = &upstream{name: "helm", module: "helm.sh/helm/v4", requires: []string{".", "compat"}}

// kubectl is kubectl's code. Its own tests have fake servers; overlay/kubectl has one that starts an API server.
var kubectl = &upstream{
	name: "kubectl", module: "k8s.io/kubectl", requires: []string{".", "compat"},
	extra: []string{"sigs.k8s.io/controller-runtime@v0.24.1"}, // envtest, with the Kubernetes modules of kubectl
	patches: []patch{replaceText{
		file: "pkg/cmd/cmd.go", old: "cmdutil.NewMatchVersionFlags(kubeConfigFlags)", new: "cmdutil.NewMatchVersionFlags(wrapGetter(kubeConfigFlags))",
	}},
}

// anykindClients replaces calls of client.New.
func anykindClients(file string, count int) replaceCalls {
	return replaceCalls{
		file: file, old: "client.New", new: "controllerruntime.NewClient", count: count,
		imports: anykindModule + "/compat/controllerruntime",
	}
}

// runtimePackages are controller-runtime's packages.
var runtimePackages = []struct {
	pkg          string
	specs        string // the Go test that runs their specs
	makesClients bool   // uses clients or caches: adapters make a difference
	ci           bool   // in CI: with adapters if makesClients
}{
	{"client", "TestClient", true, true},
	{"client/apiutil", "TestSource", false, true},
	{"cache", "TestSource", true, true},
	{"manager", "TestSource", true, false},
	{"builder", "TestBuilder", true, true},
	{"handler", "TestEventhandler", false, true},
	{"controller", "TestSource", true, true},
	{"controller/controllerutil", "TestControllerutil", true, true},
	{"cluster", "TestSource", true, true},
	{"source", "TestSource", true, false},
	{"internal/controller", "TestSource", true, false},
	{"webhook", "TestSource", true, false},
}

// suites returns the suites in the order of the table.
func suites() []*suite {
	return slices.Concat(clientGoSuites(), kubernetesSuites(), controllerRuntimeSuites(), webhookSuites(), fluxSuites(), helmSuites(), kubectlSuites(), programSuites(), fakeSuites())
}

func clientGoSuites() []*suite {
	one := func(name, pkg, with string, env ...string) *suite {
		return &suite{
			name: "client-go/" + name, upstream: clientGo, pkg: pkg, ci: true, timeout: 10 * time.Minute, env: env, with: with,
		}
	}
	const dynamic, informers = "./dynamic", "./dynamic/dynamicinformer"
	return []*suite{
		one("dynamic", dynamic, "connection", "KUBE_FEATURE_WatchListClient=true"),
		one("dynamic with adapters", dynamic, "connection, dynamic client", "SUITE_CLIENT=anykind"),
		one("dynamicinformer", informers, "connection", "KUBE_FEATURE_WatchListClient=true"),
		one("dynamicinformer without WatchList", informers, "connection", "KUBE_FEATURE_WatchListClient=false"),
		one("dynamicinformer with adapters", informers, "connection, informers", "SUITE_CACHE=anykind"),
	}
}

func controllerRuntimeSuites() (all []*suite) {
	for _, p := range runtimePackages {
		plain := &suite{
			name: "controller-runtime/" + p.pkg, upstream: controllerRuntime, pkg: "./pkg/" + p.pkg, specs: p.specs,
			ci:      p.ci && (!p.makesClients || p.pkg == "client"), // most requests of package client are client-go's
			timeout: 20 * time.Minute, with: "connection, RESTMapper",
		}
		if p.pkg == "client/apiutil" {
			plain.skip = "/aggregatedDiscovery=false" // needs an API server of 2024, downloaded by the suite
		}
		all = append(all, plain)
		if p.makesClients {
			adapted := *plain
			adapted.name += " with adapters"
			adapted.with = "RESTMapper, manager, client, cache"
			adapted.env = []string{"SUITE_ADAPTERS=anykind"}
			adapted.ci = p.ci
			all = append(all, &adapted)
		}
	}
	return all
}

func fluxSuites() []*suite {
	root := &suite{name: "flux/ssa", upstream: fluxSSA, pkg: ".", ci: true, timeout: 20 * time.Minute, with: "connection, RESTMapper, client"}
	diff := &suite{name: "flux/ssa/jsondiff", upstream: fluxSSA, pkg: "./jsondiff", ci: true, timeout: 20 * time.Minute, with: "client"}
	return []*suite{root, diff}
}

func helmSuites() []*suite {
	return []*suite{{
		name: "helm/kube", upstream: helm, pkg: "./pkg/kube", run: "^TestClient_SameOverAnykind$", timeout: 10 * time.Minute,
		with: "RESTClientGetter",
	}}
}

func kubectlSuites() []*suite {
	return []*suite{{
		name: "kubectl/cmd", upstream: kubectl, pkg: "./pkg/cmd", run: "^TestKubectl_SameOverAnykind$", timeout: 10 * time.Minute,
		with: "RESTClientGetter",
	}}
}
