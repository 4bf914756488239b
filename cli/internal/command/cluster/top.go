package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// topOptions are the options of top node and top pod.
type topOptions struct {
	*command.State

	selection                          flags.Selection
	sortBy                             string
	noHeaders, showSwap, showCapacity  bool
	containers, sum, ignoredForKubectl bool
}

func topCommand(s *command.State) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "top",
		Short:      "Display resource (CPU/memory) usage",
		Long:       "Display the recent usage of CPU and memory of nodes and pods, from the metrics API. The cluster needs a server of that API, such as metrics-server.",
		RunE:       command.RunHelp,
		SuggestFor: []string{"stats"},
	}
	if !s.IsNamed(cmd.Name()) {
		return cmd
	}
	cmd.AddCommand(topNodeCommand(s), topPodCommand(s))
	return cmd
}

func topNodeCommand(s *command.State) *cobra.Command {
	o := &topOptions{State: s}
	cmd := &cobra.Command{
		Use:                   "node [NAME | -l label]",
		Aliases:               []string{"nodes", "no"},
		Short:                 "Display resource (CPU/memory) usage of nodes",
		Example:               "  anyctl top node\n  anyctl top node node-1\n  anyctl top node --sort-by=memory",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     s.Connection.CompleteNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := o.name(cmd, args, "only one of NAME or --selector can be provided")
			if err != nil {
				return err
			}
			return o.topNode(cmd.Context(), name)
		},
	}
	fs := cmd.Flags()
	o.addFlags(fs)
	fs.BoolVar(&o.showCapacity, "show-capacity", false, "Print node resources based on Capacity instead of Allocatable(default) of the nodes.")
	return cmd
}

func topPodCommand(s *command.State) *cobra.Command {
	o := &topOptions{State: s}
	cmd := &cobra.Command{
		Use:                   "pod [NAME | -l label]",
		Aliases:               []string{"pods", "po"},
		Short:                 "Display resource (CPU/memory) usage of pods",
		Example:               "  anyctl top pod\n  anyctl top pod web-0 --containers\n  anyctl top pod -A --sort-by=cpu\n  anyctl top pod -l app=web --sum",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     s.Connection.CompletePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := o.name(cmd, args, "only one of NAME or selector can be provided")
			if err != nil {
				return err
			}
			return o.topPod(cmd.Context(), name)
		},
	}
	fs := cmd.Flags()
	o.selection.AddFlags(fs)
	o.addFlags(fs)
	fs.BoolVar(&o.containers, "containers", false, "If present, print usage of containers within a pod.")
	fs.BoolVar(&o.sum, "sum", false, "Print the sum of the resource usage")
	return cmd
}

func (o *topOptions) addFlags(fs *pflag.FlagSet) {
	if fs.Lookup("selector") == nil {
		o.selection.AddLabelFlag(fs)
	}
	fs.StringVar(&o.sortBy, "sort-by", "", "If non-empty, sort nodes list using specified field. The field can be either 'cpu' or 'memory'.")
	fs.BoolVar(&o.noHeaders, "no-headers", false, "If present, print output without headers")
	fs.BoolVar(&o.showSwap, "show-swap", false, "Print resources related to swap memory.")
	fs.BoolVar(&o.ignoredForKubectl, "use-protocol-buffers", true, "Accepted for compatibility with kubectl: JSON is read.")
}

// name validates the arguments and flags and returns the name, or "".
func (o *topOptions) name(cmd *cobra.Command, args []string, conflict string) (string, error) {
	name := ""
	switch len(args) {
	case 0:
	case 1:
		name = args[0]
	default:
		return "", command.UsageError(cmd, "%s", cmd.Use)
	}
	switch {
	case o.sortBy != "" && o.sortBy != "cpu" && o.sortBy != "memory":
		return "", errors.New("--sort-by accepts only cpu or memory")
	case name != "" && (o.selection.LabelSelector != "" || o.selection.FieldSelector != ""):
		return "", errors.New(conflict)
	}
	if _, err := labels.Parse(o.selection.LabelSelector); err != nil {
		return "", err
	}
	_, err := fields.ParseSelector(o.selection.FieldSelector)
	return name, err
}

// metrics returns the metrics of the named or selected objects.
func (o *topOptions) metrics(ctx context.Context, resource, name string) ([]*unstructured.Object, error) {
	handle, err := o.Connection.Handle(ctx, resource+".v1beta1.metrics.k8s.io")
	var missing *restmapper.NoMatchError
	switch {
	case errors.As(err, &missing):
		return nil, errors.New("Metrics API not available")
	case err != nil:
		return nil, err
	}
	found, err := o.read(ctx, handle, name, "")
	if err != nil || o.selection.FieldSelector == "" {
		return found, err
	}
	pods, err := o.selectedPods(ctx) // metrics have no fields of pods
	if err != nil {
		return nil, err
	}
	isSelected := map[types.NamespacedName]bool{}
	keyOf := func(obj *unstructured.Object) types.NamespacedName {
		return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	}
	for _, pod := range pods {
		isSelected[keyOf(pod)] = true
	}
	return slices.DeleteFunc(found, func(obj *unstructured.Object) bool { return !isSelected[keyOf(obj)] }), nil
}

// selectedPods returns the pods selected by the flags.
func (o *topOptions) selectedPods(ctx context.Context) ([]*unstructured.Object, error) {
	handle, err := o.Connection.Handle(ctx, "pods")
	if err != nil {
		return nil, err
	}
	return o.read(ctx, handle, "", o.selection.FieldSelector)
}

// read returns the named object, or the selected objects.
func (o *topOptions) read(ctx context.Context, handle *dynamic.Resource, name, fieldSelector string) ([]*unstructured.Object, error) {
	if name != "" {
		obj, err := handle.Get(ctx, name, nil)
		return []*unstructured.Object{obj}, err
	}
	if o.selection.AllNamespaces {
		handle = handle.AllNamespaces()
	}
	var found []*unstructured.Object
	for obj, err := range handle.List(ctx, &metav1.ListOptions{LabelSelector: o.selection.LabelSelector, FieldSelector: fieldSelector}) {
		if err != nil {
			return nil, err
		}
		found = append(found, obj)
	}
	return found, nil
}

func (o *topOptions) topPod(ctx context.Context, name string) error {
	metrics, err := o.metrics(ctx, "pods", name)
	if err != nil {
		return err
	}
	if len(metrics) == 0 {
		return o.noPodMetrics(ctx)
	}
	pods := make([]podUsage, len(metrics))
	for i, obj := range metrics {
		if pods[i], err = newPodUsage(obj); err != nil {
			return err
		}
	}
	slices.SortStableFunc(pods, func(a, b podUsage) int {
		byName := cmp.Compare(a.name, b.name)
		if o.selection.AllNamespaces {
			byName = cmp.Or(cmp.Compare(a.namespace, b.namespace), byName)
		}
		return cmp.Or(a.total.compare(b.total, o.sortBy), byName)
	})
	return o.printPods(pods)
}

// noPodMetrics reports why there are no metrics: no pods, pods without metrics, or pods that are too new.
func (o *topOptions) noPodMetrics(ctx context.Context) error {
	pods, err := o.selectedPods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if age := time.Since(pod.GetCreationTimestamp().Time); age > metricsDelay {
			return fmt.Errorf("Metrics not available for pod %s/%s, age: %s", pod.GetNamespace(), pod.GetName(), age)
		}
	}
	if len(pods) > 0 {
		return errors.New("metrics not available yet")
	}
	if o.selection.AllNamespaces {
		o.Errorf("No resources found")
		return nil
	}
	namespace, _, err := o.Connection.Namespace(ctx)
	if err != nil {
		return err
	}
	o.Errorf("No resources found in %s namespace.", namespace)
	return nil
}

// metricsDelay is the age of a pod from which on missing metrics are an error, as in kubectl.
const metricsDelay = 2 * time.Minute

func (o *topOptions) printPods(pods []podUsage) error {
	header := []string{"NAME", "CPU(cores)", "MEMORY(bytes)"}
	if o.containers {
		header = append([]string{"POD"}, header...)
	}
	if o.selection.AllNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	before := len(header) - len("cm") // the columns before CPU and memory
	if o.showSwap {
		header = append(header, "SWAP(bytes)")
	}
	columns := o.columns(header)
	var sum usage
	for _, pod := range pods {
		sum.add(&pod.total)
		if err := o.printPod(columns, &pod); err != nil {
			return err
		}
	}
	if o.sum {
		lines := slices.Repeat([]string{strings.Repeat("_", 8)}, len(header)-before)
		if err := row(columns, append(make([]string, before), lines...)...); err != nil {
			return err
		}
		if err := row(columns, append(make([]string, before), sum.cells(o.showSwap)...)...); err != nil {
			return err
		}
	}
	return columns.Flush()
}

func (o *topOptions) printPod(columns *print.Columns, pod *podUsage) error {
	var namespace []string
	if o.selection.AllNamespaces {
		namespace = []string{pod.namespace}
	}
	if !o.containers {
		return row(columns, slices.Concat(namespace, []string{pod.name}, pod.total.cells(o.showSwap))...)
	}
	slices.SortStableFunc(pod.containers, func(a, b containerUsage) int {
		return cmp.Or(a.used.compare(b.used, o.sortBy), cmp.Compare(a.name, b.name))
	})
	for _, container := range pod.containers {
		if err := row(columns, slices.Concat(namespace, []string{pod.name, container.name}, container.used.cells(o.showSwap))...); err != nil {
			return err
		}
	}
	return nil
}

// columns returns a writer of rows with padding after the last column, as in kubectl.
func (o *topOptions) columns(header []string) *print.Columns {
	if o.noHeaders {
		return print.NewColumns(o.Out, nil)
	}
	return print.NewColumns(o.Out, append(header, ""))
}

func row(columns *print.Columns, cells ...string) error { return columns.Row(append(cells, "")...) }
