//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dev/bench/internal/program"
)

// cliTask is a command line for whole processes of anyctl and kubectl.
type cliTask struct {
	what string
	args []string // NAMESPACE, OTHERS and MANIFEST, a file, are replaced
	// minOutput is the minimum number of output lines, multiplied by the run's count if perObject.
	minOutput int
	perObject bool
}

// cliTasks are the command lines by the names of their tasks.
var cliTasks = map[string]cliTask{
	"cli-table":         {"get pods -A as a table", cliGet(), 1, true},
	"cli-json":          {"get pods -A -o json", cliGet("-o", "json"), 1, true},
	"cli-yaml":          {"get pods -A -o yaml", cliGet("-o", "yaml"), 1, true},
	"cli-name":          {"get pods -A -o name", cliGet("-o", "name"), 1, true},
	"cli-deploy":        {"get deploy", []string{"get", "deploy"}, 2, false},
	"cli-version":       {"version", []string{"version"}, 2, false},
	"cli-api-resources": {"api-resources with many CRDs", []string{"api-resources"}, 1, true},
	"cli-complete":      {"completion of a pod's name", []string{"__complete", "get", "pods", "-n", "NAMESPACE", "web-7c5ddbdf54-0000"}, 10, false},
	"cli-delete":        {"delete of 100 objects", []string{"delete", "configmaps", "-n", "NAMESPACE", "--all"}, 100, false},

	"cli-describe":     {"describe of a Deployment", []string{"describe", "deploy", "web"}, 10, false},
	"cli-events":       {"events --for a Deployment", []string{"events", "--for", "deployment/web"}, 0, false},
	"cli-cluster-info": {"cluster-info", []string{"cluster-info"}, 1, false},
	"cli-replace":      {"replace of a Deployment", []string{"replace", "--dry-run=server", "-f", "MANIFEST"}, 1, false},
	"cli-taint":        {"taint of a node", []string{"taint", "nodes", benchNode, "key=value:NoSchedule", "--dry-run=server"}, 1, false},
	"cli-expose":       {"expose of a Deployment", []string{"expose", "deploy", "web", "--port=80", "--dry-run=server"}, 1, false},
	"cli-autoscale":    {"autoscale of a Deployment", []string{"autoscale", "deploy", "web", "--max=3", "--dry-run=server"}, 1, false},
	"cli-run":          {"run of a pod", []string{"run", "bench", "--image=bench", "--dry-run=server"}, 1, false},
	"cli-certificate":  {"approval of a certificate", []string{"certificate", "approve", benchRequest}, 1, false},

	"cli-explain":        {"explain deployments", []string{"explain", "deployments"}, 20, false},
	"cli-explain-custom": {"explain --recursive of a custom kind", []string{"explain", "rollouts." + customGroup, "--recursive"}, 1000, false},
}

// cliGet lists pods of all namespaces but OTHERS, the namespaces of earlier benchmarks.
func cliGet(more ...string) []string {
	return append([]string{"get", "pods", "-A", "--field-selector", "OTHERS"}, more...)
}

// deleted is the number of objects of cli-delete.
const deleted = 100

// definitionsTimeout limits the wait until the server serves all definitions.
const definitionsTimeout = 10 * time.Minute

// cliComparisons compares anyctl with kubectl.
func cliComparisons(pods []int, definitions int) []comparison {
	var all []comparison
	add := func(task string, count int, wall float64) {
		name := task
		if cliTasks[task].perObject {
			name = fmt.Sprintf("%s/%d", task, count)
		}
		for _, figure := range []struct {
			name, what string
			aim        float64
		}{{"cpu", "CPU", 0.4}, {"rss", "peak RSS", 0.4}, {"wall", "time", wall}} {
			all = append(all, comparison{
				strings.Replace(name, task, task+"-"+figure.name, 1), figure.what + " of the process, " + cliTasks[task].what, figure.aim,
				cost{run{"ours", task, count}, figure.name}, cost{run{"theirs", task, count}, figure.name},
			})
		}
	}
	for _, count := range pods {
		for _, task := range []string{"cli-table", "cli-json", "cli-yaml", "cli-name"} {
			add(task, count, 0.4)
		}
	}
	short := slices.Min(pods)
	long := slices.Max(pods)
	for _, task := range []string{"cli-table", "cli-json", "cli-yaml", "cli-name"} {
		if short != long {
			all = append(all, comparison{
				task + "-rss-growth", fmt.Sprintf("peak RSS of anyctl, %s, with %d pods against %d", cliTasks[task].what, long, short), 1.2,
				cost{run{"ours", task, long}, "rss"}, cost{run{"ours", task, short}, "rss"},
			})
		}
	}
	add("cli-deploy", 1, 1)
	add("cli-version", 1, 1)
	add("cli-api-resources", definitions, 1)
	add("cli-complete", short, 1)
	add("cli-delete", deleted, 1)
	for _, task := range singleTasks {
		add(task, 1, 1)
	}
	return append(all, comparison{
		"cli-size", "size of anyctl and kubectl, stripped", 0.3, cost{run{"ours", "cli-size", 1}, "size"}, cost{run{"theirs", "cli-size", 1}, "size"},
	})
}

// explainComparisons compares anyctl explain with kubectl's, with kinds of the corpus served.
func explainComparisons(kinds int) []comparison {
	var all []comparison
	for _, task := range []string{"cli-explain", "cli-explain-custom"} {
		for _, figure := range []struct{ name, what string }{{"cpu", "CPU"}, {"rss", "peak RSS"}, {"wall", "time"}} {
			all = append(all, comparison{
				task + "-" + figure.name, fmt.Sprintf("%s of the process, %s, with %d kinds of public projects served", figure.what, cliTasks[task].what, kinds), 0.2,
				cost{run{"ours", task, kinds}, figure.name}, cost{run{"theirs", task, kinds}, figure.name},
			})
		}
	}
	return all
}

// buildCLI builds anyctl like `make anyctl`. kubectl is the sandbox's.
func (s *sides) buildCLI(ctx context.Context) error {
	if s.anyctl != "" {
		return nil
	}
	kubectl := os.Getenv("ANYKIND_KUBECTL") // of the server's version, unlike one on PATH
	if kubectl == "" {
		return errors.New("ANYKIND_KUBECTL is not set (run `make bench`, or sandbox exec with the component kubectl)")
	}
	path := filepath.Join(s.dir, "anyctl")
	folder, err := moduleFolder(ctx)
	if err != nil {
		return err
	}
	err = program.Build(ctx, filepath.Join(folder, "..", "..", "cli"), "./cmd/anyctl", path, []string{"-trimpath", "-ldflags=-s -w"}, []string{"CGO_ENABLED=0"})
	if err != nil {
		return err
	}
	if err := program.Build(ctx, "", module+"processcost", filepath.Join(s.dir, "processcost"), nil, []string{"CGO_ENABLED=0"}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "deployment.json"), deploymentBody, 0o600); err != nil {
		return err
	}
	s.anyctl = path
	s.kubectl = kubectl
	return nil
}

// cli measures a whole process. Each program has its own discovery cache, filled by the first round.
func (s *sides) cli(ctx context.Context, server *server, r run, at place) (measure.Figures, error) {
	if err := s.buildCLI(ctx); err != nil {
		return nil, err
	}
	switch r.task {
	case "cli-size":
		info, err := os.Stat(s.cliPath(r.side))
		if err != nil {
			return nil, err
		}
		return measure.Figures{"size": float64(info.Size())}, nil
	case "cli-applyset":
		return s.cliSet(ctx, server, r)
	case "cli-diff":
		return s.cliDiff(ctx, server, r)
	case "cli-delete":
		if err := server.createConfigMaps(ctx, at.namespace, deleted); err != nil {
			return nil, err
		}
	}
	task := cliTasks[r.task]
	args := slices.Clone(task.args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "NAMESPACE", at.namespace)
		args[i] = strings.ReplaceAll(args[i], "OTHERS", server.withoutPodsOfOthers(at.namespace))
		args[i] = strings.ReplaceAll(args[i], "MANIFEST", filepath.Join(s.dir, "deployment.json"))
	}
	least := task.minOutput
	if task.perObject {
		least *= r.count
	}
	return s.process(ctx, r.side, args, least, 0)
}

// cliPath returns the path of anyctl or kubectl.
func (s *sides) cliPath(side string) string {
	if side == "theirs" {
		return s.kubectl
	}
	return s.anyctl
}

// process measures a process of anyctl or kubectl. Fewer lines of output than minLines, or a different exit code, are an error.
func (s *sides) process(ctx context.Context, side string, args []string, minLines, exit int) (measure.Figures, error) {
	command := exec.CommandContext(ctx, filepath.Join(s.dir, "processcost"), append([]string{s.cliPath(side)}, args...)...)
	home := filepath.Join(s.dir, "home-"+side)
	command.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECTL_APPLYSET=true"}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, stderr.Bytes())
	}
	figures := measure.Figures{}
	if err := json.Unmarshal(output, &figures); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	if figures["exit"] != float64(exit) {
		return nil, fmt.Errorf("%s: exit code %.0f\n%s", strings.Join(command.Args, " "), figures["exit"], stderr.Bytes())
	}
	if figures["lines"] < float64(minLines) {
		return nil, fmt.Errorf("%s: %.0f lines, want at least %d", strings.Join(command.Args, " "), figures["lines"], minLines)
	}
	return figures, nil
}

// prepareCLI creates the objects of a task of the command lines.
func (s *server) prepareCLI(ctx context.Context, r run, at *place) error {
	switch r.task {
	case "cli-deploy":
		return s.write(ctx, http.MethodPost, "/apis/apps/v1/namespaces/"+s.conn.Namespace()+"/deployments", deploymentBody)
	case "cli-version", "cli-size", "cli-applyset", "cli-diff": // a round of a set creates its own namespace
		return nil
	case "cli-api-resources":
		return s.createDefinitions(ctx, r.count)
	case "cli-explain", "cli-explain-custom":
		return s.defineCorpus(ctx, r.count)
	case "cli-delete":
		at.namespace = "bench-delete"
		return s.createNamespace(ctx, at.namespace)
	}
	if slices.Contains(singleTasks, r.task) {
		return s.createSingle(ctx)
	}
	return s.createPods(ctx, at.namespace, r.count)
}

// withoutPodsOfOthers returns a field selector that excludes the namespaces of the pods of other runs.
func (s *server) withoutPodsOfOthers(namespace string) string {
	var selectors []string
	for _, name := range sets.List(s.podNamespaces) {
		if name != namespace {
			selectors = append(selectors, "metadata.namespace!="+name)
		}
	}
	return strings.Join(selectors, ",")
}

func (s *server) createConfigMaps(ctx context.Context, namespace string, count int) error {
	return s.each(ctx, count, func(ctx context.Context, i int) error {
		body := fmt.Appendf(nil, `{"metadata":{"name":"bench-%d"},"data":{"number":"%[1]d"}}`, i)
		return s.write(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", body)
	})
}

// createDefinitions creates CustomResourceDefinitions in thirty groups and waits until the last definition is served.
func (s *server) createDefinitions(ctx context.Context, count int) error {
	const definition = `{"metadata":{"name":"kind%[1]ds.group%[2]d.bench.example.com"},"spec":{"group":"group%[2]d.bench.example.com","scope":"Namespaced",` +
		`"names":{"plural":"kind%[1]ds","singular":"kind%[1]d","kind":"Kind%[1]d","shortNames":["k%[1]d"]},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	err := s.each(ctx, count, func(ctx context.Context, i int) error {
		return s.write(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Appendf(nil, definition, i, i%30))
	})
	if err != nil {
		return err
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("kind%ds.group%d.bench.example.com", i, i%30)
	}
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	_, err = s.client.WaitForResources(ctx, names...)
	return err
}
