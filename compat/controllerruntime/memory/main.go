//go:build unix

// Command memory starts a manager of controller-runtime with an informer of all pods and prints the heap, the processor time and
// the time until the informer has synced:
//
//	go run ./memory -create 5000
//	go run ./memory -over anykind -form unstructured
//	go run ./memory -over controller-runtime -form unstructured
//
// The cluster is that of KUBECONFIG. The forms are unstructured, metadata and typed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/anykind/anykind/compat/controllerruntime"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	create := flag.Int("create", 0, "create `n` pods in the namespace default instead of measuring")
	over := flag.String("over", "anykind", "anykind or controller-runtime")
	form := flag.String("form", "unstructured", "unstructured, metadata or typed")
	flag.Parse()
	cfg, err := config.GetConfig()
	switch {
	case err != nil:
	case *create > 0:
		err = createPods(context.Background(), cfg, *create)
	default:
		err = measure(context.Background(), cfg, *over, *form)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure starts a manager and prints one line.
func measure(ctx context.Context, cfg *rest.Config, over, form string) error {
	began := time.Now()
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	switch over {
	case "anykind":
		from, err := controllerruntime.FromConfig(ctx, cfg)
		if err != nil {
			return err
		}
		options.NewClient, options.NewCache, options.MapperProvider = from.NewClient, from.NewCache, from.MapperProvider
	case "controller-runtime":
	default:
		return fmt.Errorf("-over %s: neither anykind nor controller-runtime", over)
	}
	obj, list, err := pods(form)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	if _, err := mgr.GetCache().GetInformer(ctx, obj); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the cache has not synced")
	}
	took := time.Since(began)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	if err := mgr.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy, client.Limit(1)); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	fmt.Printf("%-19s %-13s heap %6.1f MB  max RSS %6.1f MB  CPU %5.2f s  start %5.2f s\n", over, form, float64(memory.HeapAlloc)/1e6,
		float64(usage.Maxrss)/1e3, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()).Seconds(), took.Seconds())
	stop()
	return <-ended
}

// pods returns a pod and a list of a form.
func pods(form string) (client.Object, client.ObjectList, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	listKind := corev1.SchemeGroupVersion.WithKind("PodList")
	switch form {
	case "unstructured":
		obj, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		obj.SetGroupVersionKind(kind)
		list.SetGroupVersionKind(listKind)
		return obj, list, nil
	case "metadata":
		obj, list := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
		obj.SetGroupVersionKind(kind)
		list.SetGroupVersionKind(listKind)
		return obj, list, nil
	case "typed":
		return &corev1.Pod{}, &corev1.PodList{}, nil
	default:
		return nil, nil, fmt.Errorf("-form %s: not unstructured, metadata or typed", form)
	}
}
