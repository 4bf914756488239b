//go:build unix

// Command controllerruntime runs the comparison's tasks with controller-runtime: with its own cache and client over client-go,
// and as a manager over anykind.
package main

import (
	"context"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/compat/controllerruntime"
	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// overAnykind is the suffix of tasks with a manager over anykind's constructors.
const overAnykind = "-anykind"

// side is the pods of a namespace, accessed by controller-runtime.
type side struct {
	namespace string
	config    *rest.Config
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	adapters  *controllerruntime.Constructors // nil for controller-runtime's own
}

func main() { measure.Main(prepare) }

func prepare(ctx context.Context, s *measure.Settings) (map[string]measure.Task, error) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	pods, err := connect(ctx, s, scheme)
	if err != nil {
		return nil, err
	}
	tasks := map[string]measure.Task{}
	for _, f := range forms {
		tasks["cache"+f.suffix] = pods.cache(f)
		tasks["manager-"+f.name] = pods.manager(f)
		tasks["manager-"+f.name+overAnykind] = pods.manager(f)
	}
	return tasks, nil
}

// connect returns the side of a task after a first request. Connection and mapping are then reused by the task.
func connect(ctx context.Context, s *measure.Settings, scheme *runtime.Scheme) (*side, error) {
	pods := &side{namespace: s.Namespace, scheme: scheme}
	var c client.Client
	var err error
	if strings.HasSuffix(s.Task, overAnykind) {
		c, err = pods.connectAnykind(ctx, s.Kubeconfig)
	} else {
		c, err = pods.connectClientGo(s.Kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	pods.mapper = c.RESTMapper()
	return pods, c.List(ctx, &corev1.PodList{}, client.InNamespace(s.Namespace), client.Limit(1))
}

func (s *side) connectAnykind(ctx context.Context, kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	if s.adapters, err = controllerruntime.FromConfig(ctx, config); err != nil {
		return nil, err
	}
	s.config = s.adapters.Config()
	return s.adapters.NewClient(s.config, client.Options{Scheme: s.scheme})
}

func (s *side) connectClientGo(kubeconfig string) (c client.Client, err error) {
	s.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	s.config.QPS = -1 // no limit, as for client-go
	return client.New(s.config, client.Options{Scheme: s.scheme})
}
