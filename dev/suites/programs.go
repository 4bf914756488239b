package main

import (
	"slices"
	"strings"
	"time"
)

// publicProgram is a program on controller-runtime, or a library of programs. Its own tests start an API server and managers.
type publicProgram struct {
	upstream
	starts  replaceCalls   // envtest's Start
	clients []replaceCalls // of ctrl.NewManager and client.New
	suites  []suite
}

// overlayPackage is the package of overlay/programs, below the path of a module.
const overlayPackage = "/anykind"

// publicPrograms run with their own versions of Kubernetes' modules over a connection, and with those of compat/controllerruntime
// with adapters. The package overlay/programs is added to each.
func publicPrograms() []publicProgram {
	return []publicProgram{
		{
			upstream: upstream{name: "cert-controller", module: "github.com/open-policy-agent/cert-controller"},
			starts:   replaceCalls{file: "pkg/rotator/rotator_suite_test.go", old: "t.Start", new: "anykind.Over(t).Start"},
			clients:  []replaceCalls{{file: "pkg/rotator/rotator_test.go", old: "manager.New", new: "anykind.NewManager"}},
			suites:   []suite{{pkg: "./pkg/rotator"}},
		},
	}
}

func programSuites() (all []*suite) {
	for _, p := range publicPrograms() {
		connection := p.upstream
		connection.files = []string{"programs"}
		connection.requires = []string{".", "compat"}
		connection.patches = append(connection.patches, p.overlaid(p.starts))
		adapters := connection
		adapters.name += "-adapters"
		adapters.files = []string{"programs", "programs-adapters"}
		adapters.requires = append(slices.Clone(connection.requires), "compat/controllerruntime")
		adapters.patches = slices.Clone(connection.patches)
		for _, call := range p.clients {
			adapters.patches = append(adapters.patches, p.overlaid(call))
		}
		for _, s := range p.suites {
			s.name = p.name + strings.TrimPrefix(s.pkg, ".")
			s.timeout = 30 * time.Minute
			adapted := s
			s.upstream = &connection
			s.with = "connection"
			adapted.name += " with adapters"
			adapted.upstream = &adapters
			adapted.with = "connection, RESTMapper, manager, client, cache"
			all = append(all, &s, &adapted)
		}
	}
	return all
}

// overlaid returns the patch with the import of package anykind.
func (p *publicProgram) overlaid(call replaceCalls) replaceCalls {
	call.count = max(call.count, 1)
	call.imports = p.module + overlayPackage
	return call
}
