package stream

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/transport"
)

// maxShownNames is how many container names an error lists.
const maxShownNames = 10

// logPods are the pods whose logs are read: a collection and what narrows it.
type logPods struct {
	conn  *transport.Conn
	path  string // of the collection
	query url.Values
}

// newLogPods returns the pods of a handle: all, the one named Name, or those of the service or workload named Name.
func newLogPods(ctx context.Context, target Target, opts *LogOptions) (*logPods, error) {
	collection, err := target.Path("")
	if err != nil {
		return nil, err
	}
	pods := &logPods{conn: target.Conn(), path: collection, query: url.Values{}}
	selector := opts.Selector
	if !strings.HasSuffix(collection, "/pods") || !strings.HasPrefix(collection, "/api/v1/") {
		if opts.Name == "" {
			resource := collection[strings.LastIndexByte(collection, '/')+1:]
			return nil, fmt.Errorf("a handle on %s does not select pods: set LogOptions.Name to an object with pods", resource)
		}
		ref, err := newObjectRef(target, opts.Name)
		if err != nil {
			return nil, err
		}
		_, own, err := readOwner(ctx, target.Conn(), ref)
		if err != nil {
			return nil, err
		}
		pods.path = podPath(ref.namespace, "")
		selector = strings.Trim(own+","+selector, ",")
	} else if opts.Name != "" {
		pods.query.Set("fieldSelector", "metadata.name="+opts.Name)
	}
	if selector != "" {
		pods.query.Set("labelSelector", selector)
	}
	return pods, nil
}

func (p *logPods) list(ctx context.Context) (*podList, error) {
	var all podList
	for page, err := range listPods(ctx, p.conn, p.path, maps.Clone(p.query), listPage) {
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, page.Items...)
		all.Metadata = page.Metadata
	}
	return &all, nil
}

func (p *logPods) log(ctx context.Context, pod *pod, container *containerStatus, opts *LogOptions) *containerLog {
	log := newContainerLog(ctx, p.conn, podPath(pod.Metadata.Namespace, pod.Metadata.Name), opts)
	log.opts.Container = container.Name
	log.opts.Follow = opts.Follow && !opts.Previous
	log.opts.Timestamps = false // a LogLine has its Time
	log.run = containerRun{uid: pod.Metadata.UID, restarts: container.RestartCount}
	return log
}

// check returns an error if the one requested pod does not exist, or no pod has the container.
func (l *podList) check(opts *LogOptions, pods *logPods) error {
	if len(l.Items) == 0 && pods.query.Has("fieldSelector") {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, opts.Name)
	}
	if opts.Container == "" || len(l.Items) == 0 {
		return nil
	}
	var names []string
	for i := range l.Items {
		spec := &l.Items[i].Spec
		for _, container := range slices.Concat(spec.Containers, spec.InitContainers, spec.EphemeralContainers) {
			if container.Name == opts.Container {
				return nil
			}
			if !slices.Contains(names, container.Name) && len(names) <= maxShownNames {
				names = append(names, container.Name)
			}
		}
	}
	more := ""
	if len(names) > maxShownNames {
		names = names[:maxShownNames]
		more = " and others"
	}
	return fmt.Errorf("no pod has a container %q, but %q%s", opts.Container, names, more)
}

// podEvent is an event of a pod.
type podEvent = reflector.Event[*pod]

// Watch implements reflector.Source.
func (p *logPods) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*pod], error) {
	memory := objectMemory(p.conn)
	return reflector.JSONWatch[*pod]{
		Conn: p.conn, Request: transport.Request{Path: p.path, Query: p.query}, MaxEvent: limits.JSON(memory),
		Decode: func(object []byte, event *podEvent) error {
			var changed pod
			if err := unmarshalWithin(object, memory, &changed); err != nil {
				return fmt.Errorf("watch pods: %w", err)
			}
			*event = newPodEvent(&changed)
			return nil
		},
	}.Open(ctx, opts)
}

// IdleError implements reflector.Source.
func (p *logPods) IdleError(cause error) error { return fmt.Errorf("list pods: %w", cause) }

func newPodEvent(p *pod) podEvent {
	return podEvent{
		Key: reflector.NewKey(p.Metadata.Namespace, p.Metadata.Name), Type: watch.Added, Object: p,
		Version: reflector.Version{UID: types.UID(p.Metadata.UID), ResourceVersion: p.Metadata.ResourceVersion},
	}
}
