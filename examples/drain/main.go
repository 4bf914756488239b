// Command drain empties a node as kubectl drain does: it cordons the node, evicts its pods as their disruption budgets
// allow, and waits until they are gone. Pods of DaemonSets and the node's own stay; those that no controller brings back
// go, too. With -uncordon it opens the node again.
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
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func main() {
	timeout := flag.Duration("timeout", 5*time.Minute, "how long the pods may take to go")
	uncordon := flag.Bool("uncordon", false, "let pods onto the node again")
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
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
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

// cordon says whether new pods may come onto the node.
func cordon(ctx context.Context, client *dynamic.Client, node string, closed bool, out io.Writer) error {
	nodes, err := client.Resource(ctx, "nodes")
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, node, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed), nil)
	if err == nil {
		fmt.Fprintf(out, "node %s: unschedulable is now %t\n", node, closed)
	}
	return err
}

// drain evicts the node's pods, all at once, and waits until every one is gone or ctx ends.
func drain(ctx context.Context, client *dynamic.Client, node string, out io.Writer) error {
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	var leaving []*unstructured.Object
	for pod, err := range pods.AllNamespaces().List(ctx, &metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}) {
		if err != nil {
			return err
		}
		if why := stays(pod); why != "" {
			fmt.Fprintf(out, "pod %s/%s stays: %s\n", pod.GetNamespace(), pod.GetName(), why)
			continue
		}
		leaving = append(leaving, pod)
	}
	results := make(chan error)
	for _, pod := range leaving {
		go func() {
			if err := remove(ctx, pods.In(pod.GetNamespace()), pod); err != nil {
				results <- fmt.Errorf("pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
				return
			}
			results <- nil
		}()
	}
	var failed []error
	for range leaving {
		failed = append(failed, <-results)
	}
	fmt.Fprintf(out, "node %s: %d pods had to go\n", node, len(leaving))
	return errors.Join(failed...)
}

// stays says why a pod is not evicted, or "".
func stays(pod *unstructured.Object) string {
	if _, mirror := pod.GetAnnotations()["kubernetes.io/config.mirror"]; mirror {
		return "it is the node's own"
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return "its DaemonSet " + owner.Name + " would bring it back"
	}
	return ""
}

// remove evicts a pod once its budget allows that, and waits until it is gone.
func remove(ctx context.Context, pods *dynamic.Resource, pod *unstructured.Object) error {
	uid := pod.GetUID()
	thisOne := &dynamic.EvictOptions{Retry: true, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}
	for {
		now, err := pods.Get(ctx, pod.GetName(), nil)
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid {
			return nil // another of its name is another pod
		}
		if err == nil && now.GetDeletionTimestamp() == nil {
			err = pods.Evict(ctx, pod.GetName(), thisOne)
		}
		if err != nil && !leavesAnyway(err) {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait until it is gone: %w", ctx.Err())
		}
	}
}

// leavesAnyway says whether an eviction failed because the pod is gone, is another by now, or goes with its namespace.
func leavesAnyway(err error) bool {
	var refused *dynamic.RefusedError // not by the server: it serves no evictions
	return !errors.As(err, &refused) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.HasStatusCause(err, "NamespaceTerminating"))
}
