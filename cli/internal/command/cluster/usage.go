package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// usage has the CPU, memory and swap of a container, pod or node.
type usage struct{ cpu, memory, swap resource.Quantity }

// newUsage returns the quantities of a map such as usage or status.allocatable.
func newUsage(quantities map[string]any) (usage, error) {
	var u usage
	for name, quantity := range map[string]*resource.Quantity{"cpu": &u.cpu, "memory": &u.memory, "swap": &u.swap} {
		text, ok := quantities[name]
		if !ok {
			continue
		}
		parsed, err := resource.ParseQuantity(fmt.Sprint(text))
		if err != nil {
			return u, fmt.Errorf("quantity of %s: %w", name, err)
		}
		*quantity = parsed
	}
	return u, nil
}

func (u *usage) add(more *usage) {
	u.cpu.Add(more.cpu)
	u.memory.Add(more.memory)
	u.swap.Add(more.swap)
}

// compare orders by the quantity of --sort-by, descending.
func (u *usage) compare(other usage, sortBy string) int {
	switch sortBy {
	case "cpu":
		return cmp.Compare(other.cpu.MilliValue(), u.cpu.MilliValue())
	case "memory":
		return cmp.Compare(other.memory.Value(), u.memory.Value())
	}
	return 0
}

func (u *usage) cells(withSwap bool) []string {
	cells := []string{cpuText(&u.cpu), bytesText(&u.memory)}
	if withSwap {
		cells = append(cells, bytesText(&u.swap))
	}
	return cells
}

func cpuText(q *resource.Quantity) string { return strconv.FormatInt(q.MilliValue(), 10) + "m" }

func bytesText(q *resource.Quantity) string { return strconv.FormatInt(q.Value()>>20, 10) + "Mi" }

type containerUsage struct {
	name string
	used usage
}

type podUsage struct {
	namespace, name string
	containers      []containerUsage
	total           usage
}

func newPodUsage(metrics *unstructured.Object) (podUsage, error) {
	pod := podUsage{namespace: metrics.GetNamespace(), name: metrics.GetName()}
	for _, container := range nested.List(metrics.Object, "containers") {
		used, err := newUsage(nested.Map(container, "usage"))
		if err != nil {
			return pod, fmt.Errorf("metrics of pod %s/%s: %w", pod.namespace, pod.name, err)
		}
		pod.containers = append(pod.containers, containerUsage{nested.String(container, "name"), used})
		pod.total.add(&used)
	}
	return pod, nil
}

type nodeUsage struct {
	name string
	used usage
}

func (o *topOptions) topNode(ctx context.Context, name string) error {
	metrics, err := o.metrics(ctx, "nodes", name)
	switch {
	case err != nil:
		return err
	case len(metrics) == 0:
		return errors.New("metrics not available yet")
	}
	used := make([]nodeUsage, len(metrics))
	for i, obj := range metrics {
		used[i].name = obj.GetName()
		if used[i].used, err = newUsage(nested.Map(obj.Object, "usage")); err != nil {
			return fmt.Errorf("metrics of node %s: %w", obj.GetName(), err)
		}
	}
	slices.SortStableFunc(used, func(a, b nodeUsage) int {
		return cmp.Or(a.used.compare(b.used, o.sortBy), cmp.Compare(a.name, b.name))
	})
	handle, err := o.Connection.Handle(ctx, "nodes.v1.")
	if err != nil {
		return err
	}
	nodes, err := o.read(ctx, handle, name, "")
	if err != nil {
		return err
	}
	return o.printNodes(used, nodes)
}

// printNodes prints a row for each node with metrics, and then for each node without.
func (o *topOptions) printNodes(used []nodeUsage, nodes []*unstructured.Object) error {
	header := []string{"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}
	if o.showSwap {
		header = append(header, "SWAP(bytes)", "SWAP(%)")
	}
	unknown := slices.Repeat([]string{"<unknown>"}, len(header)-1)
	columns := o.columns(header)
	byName := map[string]*unstructured.Object{}
	for _, node := range nodes {
		byName[node.GetName()] = node
	}
	for _, node := range used {
		cells, err := o.nodeCells(&node.used, byName[node.name])
		if err != nil {
			return fmt.Errorf("node %s: %w", node.name, err)
		}
		if err := row(columns, append([]string{node.name}, cells...)...); err != nil {
			return err
		}
		delete(byName, node.name)
	}
	for _, node := range nodes {
		if byName[node.GetName()] == nil {
			continue
		}
		if err := row(columns, append([]string{node.GetName()}, unknown...)...); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// nodeCells returns the usage, and its percentage of the node. A nil node is not known to the API server.
func (o *topOptions) nodeCells(used *usage, node *unstructured.Object) ([]string, error) {
	field := "allocatable"
	if o.showCapacity {
		field = "capacity"
	}
	var fields map[string]any
	if node != nil {
		fields = nested.Map(node.Object, "status", field)
	}
	has, err := newUsage(fields)
	if err != nil {
		return nil, err
	}
	cells := []string{cpuText(&used.cpu), percent(&used.cpu, &has.cpu), bytesText(&used.memory), percent(&used.memory, &has.memory)}
	if !o.showSwap {
		return cells, nil
	}
	swap, hasSwap, err := unstructured.Get[int64](node, "status", "nodeInfo", "swap", "capacity")
	switch {
	case err != nil:
		return nil, err
	case !hasSwap:
		return append(cells, "<unknown>", "<unknown>"), nil
	}
	return append(cells, bytesText(&used.swap), percent(&used.swap, resource.NewQuantity(swap, resource.BinarySI))), nil
}

func percent(used, has *resource.Quantity) string {
	if has.IsZero() {
		return "0%"
	}
	return strconv.FormatInt(int64(float64(used.MilliValue())/float64(has.MilliValue())*100), 10) + "%"
}
