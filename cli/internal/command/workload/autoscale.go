package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/command"
	finder "github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

type autoscaleOptions struct {
	command.Creation

	objects     finder.Finder
	name        string
	min, max    int32
	cpuPercent  int32
	cpu, memory string
}

func autoscaleCommand(s *command.State) *cobra.Command {
	o := &autoscaleOptions{}
	cmd := &cobra.Command{
		Use:   "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY]",
		Short: "Auto-scale a deployment, replica set, stateful set, or replication controller",
		Long: "Create a HorizontalPodAutoscaler for a resource that has the subresource scale: the number of its pods then follows their use of " +
			"CPU and memory.",
		Example: "  anyctl autoscale deployment web --min=2 --max=10\n  anyctl autoscale deployment web --max=6 --cpu=60% --memory=200Mi",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.Files.In = s.In
	o.objects.Files.AddFlags(fs, "identifying the resource to autoscale")
	o.AddFlags(fs)
	fs.Int32Var(&o.min, "min", -1, "The lower limit for the number of pods that can be set by the autoscaler. If it's not specified or negative, the server will apply a default value.")
	fs.Int32Var(&o.max, "max", -1, "The upper limit for the number of pods that can be set by the autoscaler. Required.")
	_ = cmd.MarkFlagRequired("max") // cannot fail: the flag exists
	fs.Int32Var(&o.cpuPercent, "cpu-percent", -1, "The target average CPU utilization (represented as a percent of requested CPU) over all the pods.")
	_ = fs.MarkHidden("cpu-percent") // as above
	fs.StringVar(&o.cpu, "cpu", "", "Target CPU utilization over all the pods: a percentage of the requested CPU (70%), or the average of a pod (500m). A number without unit is milliCPU.")
	fs.StringVar(&o.memory, "memory", "", "Target memory utilization over all the pods: a percentage of the requested memory (60%), or the average of a pod (200Mi). A number without unit is mebibytes.")
	fs.StringVar(&o.name, "name", "", "The name for the newly created object. If not specified, the name of the input resource will be used.")
	return cmd
}

func (o *autoscaleOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.Complete(s); err != nil {
		return err
	}
	if o.cpuPercent >= 0 {
		s.Errorf("Flag --cpu-percent has been deprecated, Use --cpu with percentage or resource quantity format (e.g., '70%%' for utilization or '500m' for milliCPU).")
	}
	metrics, err := o.metrics()
	if err != nil {
		return err
	}
	count := 0
	var errs []error
	for info, err := range o.objects.Objects(ctx, args, true) {
		if err == nil {
			err = o.autoscale(ctx, s, info, metrics)
		}
		if err != nil {
			errs = append(errs, err)
		}
		count++
	}
	if count == 0 {
		return errors.New("no objects passed to autoscale")
	}
	return errors.Join(errs...)
}

// metrics validates the flags and returns the metrics of the autoscaler.
func (o *autoscaleOptions) metrics() ([]any, error) {
	switch {
	case o.max < 1:
		return nil, fmt.Errorf("--max=MAXPODS is required and must be at least 1, max: %d", o.max)
	case o.max < o.min:
		return nil, fmt.Errorf("--max=MAXPODS must be larger or equal to --min=MINPODS, max: %d, min: %d", o.max, o.min)
	case o.cpuPercent > 0 && o.cpu != "":
		return nil, errors.New("--cpu-percent and --cpu are mutually exclusive")
	}
	cpu := o.cpu
	if o.cpuPercent > 0 {
		cpu = fmt.Sprintf("%d%%", o.cpuPercent)
	}
	var metrics []any
	for _, metric := range []struct{ name, target, unit string }{{"cpu", cpu, "m"}, {"memory", o.memory, "Mi"}} {
		if metric.target == "" {
			continue
		}
		target, err := metricTarget(metric.name, metric.target, metric.unit)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, object{"type": "Resource", "resource": object{"name": metric.name, "target": target}})
	}
	return metrics, nil
}

// metricTarget parses a percentage, a quantity or a number of unit.
func metricTarget(name, text, unit string) (object, error) {
	text = strings.TrimSpace(text)
	if number, isPercent := strings.CutSuffix(text, "%"); isPercent {
		percent, err := strconv.ParseInt(number, 10, 32)
		if err != nil || percent < 0 {
			return nil, fmt.Errorf("invalid percentage value: %s", number)
		}
		return object{"type": "Utilization", "averageUtilization": percent}, nil
	}
	if text == "" {
		return nil, errors.New("empty input")
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		text = fmt.Sprintf("%g%s", number, unit)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return nil, fmt.Errorf("invalid resource %s value: %s", name, text)
	}
	return object{"type": "AverageValue", "averageValue": quantity.String()}, nil
}

func (o *autoscaleOptions) autoscale(ctx context.Context, s *command.State, info *finder.Info, metrics []any) error {
	api := info.Resource.APIResource()
	if _, hasScale := api.Subresource("scale"); !hasScale {
		return fmt.Errorf("cannot autoscale a %s: could not find scale subresource for %s/%s, Resource=%s in discovery information",
			api.GVK.Kind, api.GVK.Group, api.GVK.Version, api.GVR.Resource)
	}
	apiVersion, kind := api.GVK.ToAPIVersionAndKind()
	spec := object{
		"scaleTargetRef": object{"apiVersion": apiVersion, "kind": kind, "name": info.Name},
		"maxReplicas":    int64(o.max),
	}
	if o.min > 0 {
		spec["minReplicas"] = int64(o.min)
	}
	if len(metrics) > 0 {
		spec["metrics"] = metrics
	}
	created, reached, err := o.Create(ctx, s, &unstructured.Object{Object: object{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
		"metadata": object{"name": cmp.Or(o.name, info.Name)}, "spec": spec,
		"status": object{"currentMetrics": nil, "desiredReplicas": int64(0)},
	}})
	if err != nil {
		return err
	}
	operation := "autoscaled"
	if reached == nil {
		operation = "created" // as kubectl's dry run
	}
	return o.Output.Object(created, operation)
}
