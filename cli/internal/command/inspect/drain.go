package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const (
	// maxEvictions is the number of concurrent evictions. A pod protected by its disruption budget counts until it is deleted.
	maxEvictions = 100
	// retryDelay is the delay between attempts to evict a pod.
	retryDelay = 5 * time.Second
)

// drainer is the command drain.
type drainer struct {
	nodeOptions
	podFilter

	gracePeriod     int64
	timeout         time.Duration
	podSelector     string
	disableEviction bool

	pods *dynamic.Resource
	mu   sync.Mutex // guards the output
}

func drainCommand(s *command.State) *cobra.Command {
	d := &drainer{nodeOptions: nodeOptions{State: s, output: print.NewFlags()}, gracePeriod: -1}
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Drain nodes in preparation for maintenance",
		Long: "Mark nodes as unschedulable, evict their pods as disruption budgets allow, and wait until the pods are deleted.\n\n" +
			"Pods of DaemonSets and mirror pods stay. Pods without a controller, and with local data, need --force and --delete-emptydir-data.",
		Example: "  anyctl drain node-1 --ignore-daemonsets\n  anyctl drain node-1 --force --grace-period=900",
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := d.prepare(cmd, args)
			if err != nil {
				return err
			}
			return d.run(cmd.Context(), nodes)
		},
	}
	d.addFlags(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&d.force, "force", false, "Continue even if there are pods that do not declare a controller")
	fs.BoolVar(&d.ignoreDaemonSets, "ignore-daemonsets", false, "Ignore DaemonSet-managed pods")
	fs.BoolVar(&d.deleteEmptyDirData, "delete-emptydir-data", false,
		"Continue even if there are pods using emptyDir (local data that will be deleted when the node is drained)")
	fs.Int64Var(&d.gracePeriod, "grace-period", d.gracePeriod, "Seconds given to each pod to terminate; if negative, what the pod specifies")
	fs.DurationVar(&d.timeout, "timeout", 0, "The length of time to wait before giving up, zero means infinite")
	fs.StringVar(&d.podSelector, "pod-selector", "", "Label selector to filter pods on the node")
	fs.BoolVar(&d.disableEviction, "disable-eviction", false, "Delete pods rather than evict them, which bypasses disruption budgets")
	fs.IntVar(&d.skipDeletedAfter, "skip-wait-for-delete-timeout", 0,
		"Do not wait for pods that were deleted more than this many seconds ago; 0 waits for all")
	d.selection.AddChunkFlag(fs)
	return cmd
}

func (d *drainer) prepare(cmd *cobra.Command, args []string) ([]node, error) {
	if _, err := labels.Parse(d.podSelector); err != nil {
		return nil, errors.New("--pod-selector=<pod_selector> must be a valid label selector")
	}
	nodes, err := d.nodes(cmd, args)
	if err != nil {
		return nil, err
	}
	if d.pods, err = d.Connection.Handle(cmd.Context(), "pods"); err != nil {
		return nil, err
	}
	daemonSets, err := d.Connection.Handle(cmd.Context(), "daemonsets.apps")
	if err != nil {
		return nil, err
	}
	d.daemonSet = func(ctx context.Context, namespace, name string) error {
		_, err := daemonSets.Namespace(namespace).Get(ctx, name, nil)
		return err
	}
	return nodes, nil
}

// run drains the nodes in their order. It continues after a failed node.
func (d *drainer) run(ctx context.Context, nodes []node) error {
	cordoned := d.report
	if !d.output.IsDefault() { // a node is printed once
		cordoned = func(*unstructured.Object, string) {}
	}
	if err := d.setUnschedulable(ctx, nodes, true, cordoned); err != nil {
		return err
	}
	var errs, pending []string
	for _, n := range nodes {
		if err := d.drainNode(ctx, n.GetName()); err != nil {
			if ctx.Err() != nil {
				return err
			}
			d.Errorf("error: unable to drain node %q due to error: %s, continuing command...", n.GetName(), command.ServerMessage(err))
			var undeletable undeletableError
			if errors.As(err, &undeletable) {
				errs = append(errs, undeletable...) // a line each
			} else {
				errs = append(errs, command.ServerMessage(err))
			}
			pending = append(pending, n.GetName())
			continue
		}
		d.report(n.Object, "drained")
	}
	if len(pending) == 0 {
		return nil
	}
	d.Errorf("There are pending nodes to be drained:")
	for _, name := range pending {
		d.Errorf(" %s", name)
	}
	for _, text := range errs {
		d.Errorf("%s", text)
	}
	return &exit.Error{Code: 1}
}

// podsOf lists the pods of a node and decides about each.
func (d *drainer) podsOf(ctx context.Context, node string) (*podDecisions, error) {
	opts := &metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, LabelSelector: d.podSelector, Limit: d.selection.ChunkSize}
	decisions := &podDecisions{}
	for pod, err := range d.pods.AllNamespaces().List(ctx, opts) {
		if err != nil {
			return nil, err
		}
		decisions.add(pod, d.decide(ctx, pod))
	}
	return decisions, nil
}

func (d *drainer) drainNode(ctx context.Context, node string) error {
	decisions, err := d.podsOf(ctx, node)
	if err != nil {
		return err
	}
	if err := decisions.err(); err != nil {
		return err
	}
	if warnings := decisions.warnings(); warnings != "" {
		d.Errorf("Warning: %s", warnings)
	}
	if d.write.DryRun == flags.DryRunClient {
		for _, pod := range decisions.remove {
			d.printRemoval(pod)
		}
		return nil
	}
	if err = d.removePods(ctx, decisions.remove); err != nil {
		d.reportPending(ctx, node, err)
	}
	return err
}

// reportPending prints the pods left on a node after an error.
func (d *drainer) reportPending(ctx context.Context, node string, cause error) {
	decisions, err := d.podsOf(context.WithoutCancel(ctx), node)
	if err != nil {
		d.Errorf("Following errors occurred while getting the list of pods to delete:\n%s", command.ServerMessage(err))
		return
	}
	if len(decisions.remove) > 0 {
		d.Errorf("There are pending pods in node %q when an error occurred: %s", node, command.ServerMessage(cause))
		for _, pod := range decisions.remove {
			d.Errorf("pod/%s", pod.GetName())
		}
	}
}

// removePods evicts or deletes pods, with up to maxEvictions concurrent calls, and waits for their deletion. timeout limits the
// whole call.
func (d *drainer) removePods(ctx context.Context, pods []*unstructured.Object) error {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("global timeout reached: %v", d.timeout))
		defer cancel()
	}
	remove := d.evictPod
	if d.disableEviction || !d.hasEvictions() {
		remove = d.deletePod
	}
	slots := make(chan struct{}, maxEvictions)
	errs := make([]error, len(pods))
	var workers sync.WaitGroup
	for i, pod := range pods {
		slots <- struct{}{}
		workers.Go(func() {
			errs[i] = remove(ctx, d.pods.Namespace(pod.GetNamespace()), pod)
			<-slots
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// hasEvictions reports whether the server serves pods/eviction.
func (d *drainer) hasEvictions() bool {
	_, ok := d.pods.APIResource().Subresource("eviction")
	return ok
}

// printRemoval reports the begin of a pod's removal. With -o a dry run prints the pod.
func (d *drainer) printRemoval(pod *unstructured.Object) {
	if d.output.IsDefault() || d.write.DryRun == flags.DryRunNone {
		d.print("evicting pod %s/%s%s", pod.GetNamespace(), pod.GetName(), d.write.DryRun.Suffix())
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report(pod, "evicted")
}

// print prints a line, with -o to the standard error stream. It is safe for concurrent use.
func (d *drainer) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.output.IsDefault() {
		d.Errorf(format, args...)
		return
	}
	_ = d.Printf(format+"\n", args...)
}

func (d *drainer) printError(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Errorf(format, args...)
}

func (d *drainer) deleteOptions() *metav1.DeleteOptions {
	opts := &metav1.DeleteOptions{}
	if d.gracePeriod >= 0 {
		opts.GracePeriodSeconds = &d.gracePeriod
	}
	if d.write.DryRun == flags.DryRunServer {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return opts
}

// evictPod evicts a pod and waits for its deletion. It retries every retryDelay while a disruption budget forbids the eviction.
func (d *drainer) evictPod(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) error {
	for {
		d.printRemoval(pod)
		err := in.Evict(ctx, pod.GetName(), &dynamic.EvictOptions{DeleteOptions: d.deleteOptions()})
		if apierrors.IsNotFound(err) {
			return nil
		}
		isTerminating := apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, "NamespaceTerminating")
		switch {
		case err == nil, isTerminating && pod.GetDeletionTimestamp() != nil:
			if d.write.DryRun == flags.DryRunServer {
				return nil
			}
			return d.waitForDeletion(ctx, in, pod, "evicted")
		case ctx.Err() != nil:
			return fmt.Errorf("error when evicting pods/%q -n %q: %w", pod.GetName(), pod.GetNamespace(), context.Cause(ctx))
		case apierrors.IsTooManyRequests(err):
			d.printError("error when evicting pods/%q -n %q (will retry after %v): %s", pod.GetName(), pod.GetNamespace(), retryDelay, command.ServerMessage(err))
		case isTerminating:
			d.printError("error when evicting pod %q from terminating namespace %q (will retry after %v): %s",
				pod.GetName(), pod.GetNamespace(), retryDelay, command.ServerMessage(err))
		default:
			return fmt.Errorf("error when evicting pods/%q -n %q: %s", pod.GetName(), pod.GetNamespace(), command.ServerMessage(err))
		}
		if !sleep(ctx, retryDelay) {
			return fmt.Errorf("error when evicting pods/%q -n %q: %w", pod.GetName(), pod.GetNamespace(), context.Cause(ctx))
		}
		if fresh, err := in.Get(ctx, pod.GetName(), nil); err == nil {
			pod = fresh
		}
	}
}

// deletePod deletes a pod and waits for its deletion.
func (d *drainer) deletePod(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) error {
	_, err := in.Delete(ctx, pod.GetName(), d.deleteOptions())
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if d.write.DryRun == flags.DryRunServer {
		return nil
	}
	return d.waitForDeletion(ctx, in, pod, "deleted")
}

// waitForDeletion waits until a pod is deleted, or skipped because of skipDeletedAfter.
func (d *drainer) waitForDeletion(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object, operation string) error {
	skipped := false
	var err error
	if d.skipDeletedAfter > 0 {
		skipped, err = d.waitOrSkip(ctx, in, pod)
	} else {
		_, err = in.Wait(ctx, pod.GetName(), dynamic.Deleted(pod.GetUID()))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", pod.GetName(), pod.GetNamespace(), context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", pod.GetName(), pod.GetNamespace(), err)
	case skipped:
		d.print("pod %q has DeletionTimestamp older than %d seconds, skipping", pod.GetName(), d.skipDeletedAfter)
	default:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.report(pod, operation)
	}
	return nil
}

// waitOrSkip polls a pod each second until it is deleted or isSkipped.
func (d *drainer) waitOrSkip(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) (skipped bool, err error) {
	for {
		now, err := in.Get(ctx, pod.GetName(), nil)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.GetUID() != pod.GetUID():
			return false, nil
		case err != nil:
			return false, err
		case d.isSkipped(now):
			return true, nil
		}
		if !sleep(ctx, time.Second) {
			return false, context.Cause(ctx)
		}
	}
}

// sleep waits for delay. It returns false if ctx is done earlier.
func sleep(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
