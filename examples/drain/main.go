// Command drain works like kubectl drain: it cordons a node, evicts its pods as permitted by their disruption budgets, and waits
// until they are deleted. Pods of DaemonSets and mirror pods stay; pods without a controller are evicted, too. With -uncordon it
// makes the node schedulable again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// maxEvictions limits concurrent evictions. A pod protected by its budget counts until it is gone.
const maxEvictions = 100

func main() {
	timeout := flag.Duration("timeout", 5*time.Minute, "how long the eviction of all pods may take")
	uncordon := flag.Bool("uncordon", false, "make the node schedulable again")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: drain [-timeout 5m] [-uncordon] NODE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	err := run(ctx, flag.Arg(0), *uncordon)
	cancel()
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, node string, uncordon bool) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	if uncordon {
		return cordon(ctx, client, node, false, os.Stdout)
	}
	if err := cordon(ctx, client, node, true, os.Stdout); err != nil {
		return err
	}
	return drain(ctx, client, node, os.Stdout)
}

// cordon sets whether the node is unschedulable.
func cordon(ctx context.Context, client *dynamic.Client, node string, unschedulable bool, out io.Writer) error {
	nodes, err := client.Resource(ctx, "nodes")
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, node, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable), nil)
	if err == nil {
		fmt.Fprintf(out, "node %s: unschedulable is now %t\n", node, unschedulable)
	}
	return err
}

// drain evicts the node's pods concurrently and waits until all are deleted or ctx ends.
func drain(ctx context.Context, client *dynamic.Client, node string, out io.Writer) error {
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	logger := log.New(out, "", 0) // safe for concurrent use
	var evicted atomic.Int64
	onNode := &metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
	err = pods.AllNamespaces().ForEach(ctx, onNode, &dynamic.ForEachOptions{Workers: maxEvictions},
		func(ctx context.Context, in *dynamic.Resource, pod *unstructured.Object) error {
			if reason := skipReason(pod); reason != "" {
				logger.Printf("pod %s/%s stays: %s", pod.GetNamespace(), pod.GetName(), reason)
				return nil
			}
			evicted.Add(1)
			return evict(ctx, in, pod)
		})
	logger.Printf("node %s: %d pods evicted", node, evicted.Load())
	return err
}

// skipReason returns the reason not to evict a pod, or "".
func skipReason(pod *unstructured.Object) string {
	if _, mirror := pod.GetAnnotations()["kubernetes.io/config.mirror"]; mirror {
		return "mirror pod"
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return "DaemonSet " + owner.Name + " would create it again"
	}
	return ""
}

// evict evicts a pod once its budget permits, and waits until it is deleted.
func evict(ctx context.Context, pods *dynamic.Resource, pod *unstructured.Object) error {
	uid := pod.GetUID()
	opts := &dynamic.EvictOptions{Retry: true, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}
	if err := pods.Evict(ctx, pod.GetName(), opts); err != nil && !isDeletedAnyway(err) {
		return err
	}
	_, err := pods.Wait(ctx, pod.GetName(), dynamic.Deleted(uid))
	return err
}

// isDeletedAnyway reports whether an eviction failed because the pod was deleted or replaced, or is deleted with its namespace.
func isDeletedAnyway(err error) bool {
	var invalid *dynamic.InvalidRequestError // this server has no evictions
	return !errors.As(err, &invalid) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.HasStatusCause(err, "NamespaceTerminating"))
}
