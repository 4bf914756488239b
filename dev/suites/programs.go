package main

import (
	"slices"
	"strings"
	"time"
)

// publicProgram is a program on controller-runtime, or a library of programs. Its own tests start an API server and managers.
type publicProgram struct {
	upstream
	starts  []replaceCalls // of envtest's Start
	clients []replaceCalls // of ctrl.NewManager and client.New
	// ownVersions is set if the tests also run with the program's versions of Kubernetes' modules, over a connection. A large
	// program compiles once, with the versions of compat/controllerruntime.
	ownVersions bool
	suites      []suite
}

// overlayPackage is the package of overlay/programs, below the path of a module.
const overlayPackage = "/anykind"

// withoutAnykind is the variable of the overlay for the variant with envtest's config and controller-runtime's own clients.
const withoutAnykind = "SUITE_ADAPTERS=none"

const kroModule = "github.com/kubernetes-sigs/kro"

// commonVersions are raised in all large programs to the same versions. kro has the newest versions of shared modules. The
// programs then share most of their compiled packages.
var commonVersions = []string{
	"k8s.io/apiextensions-apiserver@v0.37.2", "k8s.io/apiserver@v0.37.2", "k8s.io/cli-runtime@v0.37.2", "k8s.io/component-base@v0.37.2",
	"k8s.io/kubectl@v0.37.2", "github.com/felixge/httpsnoop@v1.1.0", "github.com/json-iterator/go@v1.1.13-0.20220915233716-71ac16282d12",
	"golang.org/x/crypto@v0.56.0",
}

// publicPrograms run with the versions of compat/controllerruntime. The package overlay/programs is added to each.
func publicPrograms() []publicProgram {
	return []publicProgram{
		{
			upstream:    upstream{name: "cert-controller", module: "github.com/open-policy-agent/cert-controller"},
			starts:      []replaceCalls{{file: "pkg/rotator/rotator_suite_test.go", old: "t.Start", new: "anykind.Over(t).Start"}},
			clients:     []replaceCalls{{file: "pkg/rotator/rotator_test.go", old: "manager.New", new: "anykind.NewManager"}},
			ownVersions: true,
			suites:      []suite{{pkg: "./pkg/rotator"}},
		},
		{
			upstream: upstream{name: "kro", module: kroModule, extra: commonVersions},
			starts:   []replaceCalls{{file: kroEnvironment, old: "env.TestEnv.Start", new: "anykind.Over(env.TestEnv).Start"}},
			clients: []replaceCalls{
				{file: kroEnvironment, old: "ctrl.NewManager", new: "anykind.NewManager"},
				{file: kroEnvironment, old: "client.New", new: "anykind.NewClient"},
			},
			suites: []suite{{pkg: "./test/integration/suites/core", specs: "TestCore"}},
		},
		clusterAPI(),
		kustomizeController(),
	}
}

const kroEnvironment = "test/integration/environment/setup.go"

// clusterAPI is tested by packages whose tests use a client or a cache.
func clusterAPI() publicProgram {
	const (
		environment = "internal/test/envtest/environment.go"
		migrator    = "controllers/crdmigrator/crd_migrator_test.go"
		accessor    = "controllers/clustercache/cluster_accessor_client.go"
	)
	p := publicProgram{
		upstream: upstream{
			name: "cluster-api", module: "sigs.k8s.io/cluster-api", findsFiles: true,
			extra: append([]string{kroModule + "@v0.9.4", "k8s.io/cluster-bootstrap@v0.37.2"}, commonVersions...),
			patches: []patch{
				// Tests write a kubeconfig with the credential of this config. A manager's config over a connection has none.
				replaceText{file: environment, old: "Config:  mgr.GetConfig(),", new: "Config:  env.Config,"},
				replaceText{file: migrator, old: "\tctrl \"sigs.k8s.io/controller-runtime\"\n"}, // used by NewManager only
			},
		},
		clients: []replaceCalls{
			{file: environment, old: "ctrl.NewManager", new: "anykind.NewManager"},
			{file: migrator, old: "ctrl.NewManager", new: "anykind.NewManager"},
			{file: migrator, old: "client.New", new: "anykind.NewClient"},
			{file: accessor, old: "client.New", new: "anykind.NewClient", count: 2}, // of a workload cluster
			{file: accessor, old: "ctrlcache.New", new: "anykind.NewCache"},
		},
	}
	for _, pkg := range []string{
		"util/patch/test", "internal/util/ssa/test", "util/controller", "controllers/crdmigrator", "controllers/clustercache",
		"core/reconcilers/machineset",
	} {
		p.suites = append(p.suites, suite{pkg: "./" + pkg})
	}
	return p
}

// kustomizeController is Flux's controller of Kustomizations.
func kustomizeController() publicProgram {
	const environment = "internal/controller/suite_test.go"
	return publicProgram{
		upstream: upstream{
			name: "kustomize-controller", module: "github.com/fluxcd/kustomize-controller",
			files: []string{"kustomize-controller"},
			extra: append([]string{kroModule + "@v0.9.4"}, commonVersions...),
			// Upstream's Makefile downloads these CustomResourceDefinitions.
			copies: []copies{{module: "github.com/fluxcd/source-controller", folder: "config/crd/bases"}},
			patches: []patch{replaceText{ // its container needs Docker
				file: environment,
				old:  "\tpool, resource, err := createVaultTestInstance()\n\tif err != nil {\n\t\tpanic(fmt.Sprintf(\"Failed to create Vault instance: %v\", err))\n\t}\n\tdefer func() {\n\t\tpool.Purge(resource)\n\t}()\n",
				new:  "\t_ = createVaultTestInstance\n",
			}},
		},
		clients: []replaceCalls{
			{file: environment, old: "testenv.New", new: "anykind.NewTestEnvironment"},
			{file: environment, old: "client.New", new: "anykind.NewClient"},
		},
		suites: []suite{{pkg: "./internal/controller", skip: "^TestKustomizationReconciler_Decryptor$"}},
	}
}

func programSuites() (all []*suite) {
	for _, p := range publicPrograms() {
		adapters := p.overAnykind("programs", "programs-adapters")
		adapters.name += "-adapters"
		adapters.requires = append(adapters.requires, "compat/controllerruntime")
		adapters.patches = append(adapters.patches, p.overlaid(p.clients)...)
		baseline := adapters
		if p.ownVersions {
			baseline = p.overAnykind("programs")
		}
		for _, s := range p.suites {
			name := p.name + strings.TrimPrefix(s.pkg, ".")
			variant := func(suffix string, u *upstream, with string, env ...string) {
				one := s
				one.name = name + suffix
				one.upstream = u
				one.with = with
				one.env = env
				one.timeout = 30 * time.Minute
				all = append(all, &one)
			}
			variant(" without anykind", baseline, "nothing", withoutAnykind)
			if p.ownVersions {
				variant("", baseline, "connection")
			}
			variant(" with adapters", adapters, "connection, RESTMapper, manager, client, cache")
		}
	}
	return all
}

// overAnykind returns the program with the overlay's folders and, if it starts an API server itself, with a connection to it.
func (p *publicProgram) overAnykind(folders ...string) *upstream {
	u := p.upstream
	u.files = append(folders, p.files...)
	u.requires = []string{".", "compat"}
	u.patches = append(slices.Clone(p.patches), p.overlaid(p.starts)...)
	return &u
}

// overlaid returns the patches with the import of package anykind.
func (p *publicProgram) overlaid(calls []replaceCalls) (all []patch) {
	for _, call := range calls {
		call.count = max(call.count, 1)
		call.imports = p.module + overlayPackage
		all = append(all, call)
	}
	return all
}
