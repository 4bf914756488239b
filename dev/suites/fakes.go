package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The suites of fakes are unit tests of public projects, written for client-go's fake clientset. Here the constructors of the fake
// start a server of apitest instead.

// fakesFile lists the tests that fail on apitest. A reason begins with its class: see fakeClasses.
const fakesFile = "fakes.txt"

//go:embed fakes.txt
var fakeList string

// fakeClasses are the reasons for a failure, in the order of the table.
var fakeClasses = []string{"fake", "test", "apitest"}

// fakeProject is a project with unit tests on fakes.
type fakeProject struct {
	name, module string
	extra        []string // see upstream
	packages     []string // with the tests
	patches      []patch
}

var fakeProjects = []fakeProject{
	{
		name: "cloud-provider", module: "k8s.io/cloud-provider",
		packages: []string{"controllers/node", "controllers/nodelifecycle", "controllers/route", "controllers/service", "service/helpers"},
	},
	{
		name: "descheduler", module: "sigs.k8s.io/descheduler", extra: []string{"k8s.io/component-helpers@v0.37.2"},
		packages: []string{
			"pkg/descheduler/node", "pkg/descheduler/pod", "pkg/framework/plugins/defaultevictor", "pkg/framework/plugins/removeduplicates",
			"pkg/framework/plugins/removepodsviolatingnodeaffinity",
		},
	},
	{
		name: "endpointslice", module: "k8s.io/endpointslice", packages: []string{"."},
		patches: []patch{replaceText{ // the tests create objects in these namespaces
			file: "utils_test.go", old: "fake.NewSimpleClientset()", new: `fake.NewClientset(fake.Namespaces("test", "testing", "ns1"))`,
		}},
	},
	{
		name: "kubectl", module: "k8s.io/kubectl", extra: []string{"k8s.io/component-helpers@v0.37.2"},
		packages: []string{"pkg/describe", "pkg/drain", "pkg/polymorphichelpers"},
	},
	{name: "external-provisioner", module: "sigs.k8s.io/sig-storage-lib-external-provisioner/v13", packages: []string{"controller"}},
}

// fakeImports replaces client-go's package fake by the overlay's in all tests of packages.
type fakeImports struct {
	module   string
	packages []string
}

func (p fakeImports) apply(dir string) error {
	const old = `"k8s.io/client-go/kubernetes/fake"`
	count := 0
	for _, folder := range p.packages {
		paths, err := filepath.Glob(filepath.Join(dir, folder, "*_test.go"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.Contains(string(source), old) {
				continue
			}
			count++
			text := strings.ReplaceAll(string(source), old, fmt.Sprintf("%q", p.module+"/anykindfake"))
			text = strings.ReplaceAll(text, "&fake.Clientset{}", "fake.NewClientset()")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	if count == 0 {
		return fmt.Errorf("no test of %s imports %s", p.module, old)
	}
	return nil
}

func fakeSuites() (all []*suite) {
	for _, p := range fakeProjects {
		u := &upstream{
			name: "fakes-" + p.name, files: []string{"fakes"}, module: p.module, requires: []string{".", "apitest", "apitest/clients"}, extra: p.extra,
			patches: append(slices.Clone(p.patches), fakeImports{p.module, p.packages}),
		}
		for _, pkg := range p.packages {
			all = append(all, &suite{
				name: "fakes/" + p.name + "/" + pkg, upstream: u, pkg: "./" + pkg, timeout: 2 * time.Minute, with: "apitest", fakes: true,
			})
		}
	}
	return all
}

// fakeTable returns the table of docs/APITEST.md.
func fakeTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| project | tests | pass | fail: fake | fail: test | fail: apitest |\n|---|---|---|---|---|---|\n")
	for _, p := range fakeProjects {
		counts := map[string]int{}
		for _, r := range rows {
			if !strings.HasPrefix(r.report.suite.name, "fakes/"+p.name+"/") {
				continue
			}
			counts["pass"] += r.summary.passed
			for _, e := range r.summary.excluded {
				class, _, _ := strings.Cut(e.reason, ":")
				counts[class]++
			}
		}
		all := counts["pass"]
		for _, class := range fakeClasses {
			all += counts[class]
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", p.module, all, counts["pass"], counts["fake"], counts["test"], counts["apitest"])
	}
	return b.String() + "\n" + fakeReasons(rows)
}

// fakeReasons returns the list of reasons with their numbers of tests.
func fakeReasons(rows []row) string {
	counts := map[string]int{}
	for _, r := range rows {
		for _, e := range r.summary.excluded {
			counts[e.reason]++
		}
	}
	reasons := make([]string, 0, len(counts))
	for reason := range counts {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	var b strings.Builder
	for _, reason := range reasons {
		fmt.Fprintf(&b, "- %d: %s\n", counts[reason], reason)
	}
	return b.String()
}
