//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/anykind/anykind/dev/bench/internal/soak"
	"github.com/anykind/anykind/unstructured"
)

// maxConvergence bounds the wait for an equal inventory after the last fault. A check of permissions and a retry take up to two
// minutes each.
const maxConvergence = 6 * time.Minute

// runInventory runs a cache of all kinds through the churn and the faults, and compares it with kubectl.
func runInventory(ctx context.Context, dir string, w *world, u *user) error {
	sides, err := startSides(ctx, dir, []string{"ours"}, &soak.Config{Kubeconfig: u.kubeconfig, Inventory: true})
	if err != nil {
		return err
	}
	r := &inventoryResult{result: result{opts: w.opts, samples: map[string][]soak.Sample{}}, definitions: len(w.resources) - len(builtIn)}
	if r.before, _, err = w.awaitInventory(ctx, sides[0]); err != nil {
		return fmt.Errorf("before the churn: %w", err)
	}
	r.began = time.Now()
	if err := churnAndSample(ctx, w, u, sides, &r.result); err != nil {
		return err
	}
	ended := time.Now()
	for err := w.grantAll(ctx); err != nil; err = w.grantAll(ctx) {
		progress("grant the permissions: %v", err)
		if time.Since(ended) > maxConvergence {
			return err
		}
		time.Sleep(time.Second)
	}
	if r.after, r.objects, err = w.awaitInventory(ctx, sides[0]); err != nil {
		return err
	}
	r.convergence = time.Since(ended)
	left, err := sides[0].stop()
	if err != nil {
		return err
	}
	r.left = append(r.left, left)
	fmt.Print(r.table())
	if w.opts.docs != "" {
		return write(filepath.Join(w.opts.docs, "INVENTORY.md"), r.table())
	}
	return nil
}

// awaitInventory waits until the cache equals kubectl's lists, and returns a sample and the number of objects.
func (w *world) awaitInventory(ctx context.Context, p *process) (*soak.Sample, int, error) {
	for began := time.Now(); ; {
		differences, objects, err := compareInventory(ctx, w.opts.kubeconfig, p)
		if err != nil { // an aggregated or custom group may be late after the last fault
			differences = []string{err.Error()}
		}
		if len(differences) == 0 {
			progress("the inventory equals kubectl's lists of %d objects after %s", objects, time.Since(began).Round(100*time.Millisecond))
			sample, err := p.sample()
			return sample, objects, err
		}
		slices.Sort(differences)
		summary := fmt.Sprintf("%d differences from kubectl's lists: %s", len(differences), strings.Join(differences[:min(5, len(differences))], "; "))
		progress("%s", summary)
		if time.Since(began) > maxConvergence {
			return nil, 0, errors.New(summary)
		}
		time.Sleep(time.Second)
	}
}

// compareInventory returns the differences between the cache and kubectl's lists, and the number of listed objects.
func compareInventory(ctx context.Context, kubeconfig string, p *process) (differences []string, objects int, err error) {
	before, err := p.versions()
	if err != nil {
		return nil, 0, err
	}
	listed, err := kubectlVersions(ctx, kubeconfig)
	if err != nil {
		return nil, 0, err
	}
	after, err := p.versions()
	if err != nil {
		return nil, 0, err
	}
	for _, versions := range listed {
		objects += len(versions)
	}
	return differ(before, listed, after), objects, nil
}

// differ returns the differences between a cache, before and after the lists, and the lists. A listed object must equal a version of
// the cache. A failure of the cache is a difference.
func differ(before, listed, after soak.Versions) (differences []string) {
	for kind, versions := range listed {
		for name, version := range versions {
			if before[kind][name] != version && after[kind][name] != version {
				differences = append(differences, fmt.Sprintf("%s %s is %q, listed as %q", kind, name, after[kind][name], version))
			}
		}
	}
	for kind, versions := range after {
		for name, version := range versions {
			isFailure := kind == soak.Failure
			if _, isListed := listed[kind][name]; !isListed && (isFailure || before[kind][name] == version) {
				differences = append(differences, fmt.Sprintf("%s %s is %q, not listed", kind, name, version))
			}
		}
	}
	return differences
}

// kubectlVersions lists the objects of all kinds with kubectl.
func kubectlVersions(ctx context.Context, kubeconfig string) (soak.Versions, error) {
	run := func(args ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, os.Getenv("ANYKIND_KUBECTL"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
		out, err := command.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("kubectl %s: %w: %s", args[0], err, exit.Stderr)
		}
		return out, err
	}
	names, err := run("api-resources", "--verbs", "list,watch", "--output", "name", "--cached=false")
	if err != nil {
		return nil, err
	}
	// The inventory leaves these out: Endpoints are EndpointSlices as well, and the Events are those of v1.
	resources := slices.DeleteFunc(strings.Fields(string(names)), func(name string) bool {
		return name == "endpoints" || name == "events.events.k8s.io"
	})
	all := soak.Versions{}
	for chunk := range slices.Chunk(resources, 40) {
		text, err := run("get", strings.Join(chunk, ","), "--all-namespaces", "--output", "json")
		if err != nil {
			return nil, err
		}
		var list struct{ Items []map[string]any }
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if err := all.Add(&unstructured.Object{Object: item}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// everything is the name of a Role for all resources of a namespace.
const everything = "everything"

// grantAll creates the account and its rights: all groups of the server in all namespaces, and everything in a single namespace.
func (w *world) grantAll(ctx context.Context) error {
	groups, err := w.groups(ctx)
	if err != nil {
		return err
	}
	subjects := []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace(0)}}
	role := func(kind, name string) map[string]any {
		return map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
	}
	for _, one := range []struct {
		resource string
		object   map[string]any
	}{
		{"serviceaccounts", map[string]any{"metadata": map[string]any{"name": account, "namespace": namespace(0)}}},
		{"clusterrolebindings.rbac.authorization.k8s.io", map[string]any{"metadata": map[string]any{"name": account}, "roleRef": role("ClusterRole", account), "subjects": subjects}},
		{"roles.rbac.authorization.k8s.io", map[string]any{"metadata": map[string]any{"name": everything, "namespace": namespace(0)}, "rules": readRules("*")}},
		{"rolebindings.rbac.authorization.k8s.io", map[string]any{
			"metadata": map[string]any{"name": everything, "namespace": namespace(0)}, "roleRef": role("Role", everything), "subjects": subjects,
		}},
	} {
		if err := w.create(ctx, one.resource, &unstructured.Object{Object: one.object}); err != nil {
			return err
		}
	}
	return w.permit(ctx, groups)
}

func readRules(groups ...string) []any {
	list := make([]any, len(groups))
	for i, group := range groups {
		list[i] = group
	}
	return []any{map[string]any{"apiGroups": list, "resources": []any{"*"}, "verbs": []any{"get", "list", "watch"}}}
}

// permit permits the user to read some groups in all namespaces.
func (w *world) permit(ctx context.Context, groups []string) error {
	roles, err := w.client.Resource(ctx, "clusterroles.rbac.authorization.k8s.io")
	if err != nil {
		return err
	}
	_, _, err = roles.Upsert(ctx, account, func(obj *unstructured.Object) error {
		obj.Object["rules"] = readRules(groups...)
		return nil
	}, nil)
	return err
}

// withdraw withdraws the user's permissions for a random group, except in a single namespace, and grants the rest.
func (w *world) withdraw(ctx context.Context, rng *rand.Rand) error {
	groups, err := w.groups(ctx)
	if err != nil {
		return err
	}
	i := rng.IntN(len(groups))
	if rng.IntN(3) == 0 {
		i = slices.Index(groups, "") // the namespaces are unknown, too
	}
	return w.permit(ctx, slices.Delete(groups, i, i+1))
}

// groups returns the names of all groups: of the server and of the definitions.
func (w *world) groups(ctx context.Context) (groups []string, err error) {
	snapshot, err := w.client.Discovery().Refresh(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range snapshot.Groups {
		groups = append(groups, g.Name)
	}
	for _, r := range w.resources {
		groups = append(groups, r.group)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// redefineSeveral deletes and creates 20 definitions at the same time.
func (w *world) redefineSeveral(ctx context.Context, rng *rand.Rand) error {
	var group errgroup.Group
	for _, i := range rng.Perm(len(w.resources) - len(builtIn))[:20] {
		after := time.Duration(rng.IntN(10)) * time.Second
		group.Go(func() error { return w.redefine(ctx, w.resources[len(builtIn)+i], after) })
	}
	return group.Wait()
}

// inventoryResult has the measurements of a soak of a cache of all kinds.
type inventoryResult struct {
	result
	definitions, objects int
	before, after        *soak.Sample // at quiet moments
	convergence          time.Duration
}

// table returns the result as Markdown.
func (r *inventoryResult) table() string {
	var out strings.Builder
	samples := r.samples["ours"]
	fmt.Fprintf(&out, "%s of %d changes a second (%d accepted) to objects of %d custom and %d built-in kinds, on %s, seed %d.\n\n",
		r.opts.length.Round(time.Second), r.opts.rate, r.changes, r.definitions, len(builtIn), r.began.Format(time.DateOnly), r.opts.seed)
	r.writeFaults(&out)
	const mega = 1e6
	out.WriteString("\n| | before | after |\n|---|---|---|\n")
	row := func(name, format string, of func(*soak.Sample) any) {
		fmt.Fprintf(&out, "| %s | "+format+" | "+format+" |\n", name, of(r.before), of(r.after))
	}
	row("objects", "%d", func(s *soak.Sample) any { return s.Objects })
	row("goroutines", "%d", func(s *soak.Sample) any { return s.Goroutines })
	row("descriptors", "%d", func(s *soak.Sample) any { return s.Descriptors })
	row("heap in use, MB", "%.0f", func(s *soak.Sample) any { return float64(s.HeapInuse) / mega })
	row("RSS, MB", "%.0f", func(s *soak.Sample) any { return float64(s.RSS) / mega })
	fmt.Fprintf(&out, "\nIn between the RSS was at most %.0f MB, and there were at most %.0f goroutines and %.0f descriptors. The process took %.0f s of CPU.\n",
		most(samples, func(s soak.Sample) uint64 { return s.RSS })/mega,
		most(samples, func(s soak.Sample) uint64 { return uint64(s.Goroutines) }),  //nolint:gosec // positive
		most(samples, func(s soak.Sample) uint64 { return uint64(s.Descriptors) }), //nolint:gosec // positive
		r.after.CPU-r.before.CPU)
	fmt.Fprintf(&out, "\nThe cache and a consumer of its changes equalled kubectl's lists of %d objects, %.0f s after the end: the UIDs, resourceVersions and contents.\n"+
		"After the cache stopped, the process had %s.\n", r.objects, r.convergence.Seconds(), remains(r.left[0]))
	return out.String()
}
