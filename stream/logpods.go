package stream

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listPage is how many objects are asked for at once.
const listPage = "500"

// podSource is the pods whose logs are read: where their list is found, and what narrows it.
type podSource struct {
	conn  *transport.Conn
	path  string // of the collection
	query url.Values
}

// sourceOfLogs returns the pods of a handle: all, the one of that name, or those that a service or workload of that name
// selects.
func sourceOfLogs(ctx context.Context, target Target, opts *LogOptions) (*podSource, error) {
	collection, err := target.Path("")
	if err != nil {
		return nil, err
	}
	source := &podSource{conn: target.Conn(), path: collection, query: url.Values{}}
	selector := opts.Selector
	if !strings.HasSuffix(collection, "/pods") || !strings.HasPrefix(collection, "/api/v1/") {
		if opts.Name == "" {
			resource := collection[strings.LastIndexByte(collection, '/')+1:]
			return nil, fmt.Errorf("a handle on %s is not one on pods: set LogOptions.Name to the object whose pods' logs to read", resource)
		}
		at, err := locate(target, opts.Name)
		if err != nil {
			return nil, err
		}
		own, err := readSelector(ctx, target.Conn(), at)
		if err != nil {
			return nil, err
		}
		source.path = at.pods("")
		selector = strings.Trim(own+","+selector, ",")
	} else if opts.Name != "" {
		source.query.Set("fieldSelector", "metadata.name="+opts.Name)
	}
	if selector != "" {
		source.query.Set("labelSelector", selector)
	}
	return source, nil
}

// podList is a list of pods.
type podList struct {
	Metadata struct{ ResourceVersion, Continue string }
	Items    []podParts
}

// list lists the pods, page by page.
func (s *podSource) list(ctx context.Context) (*podList, error) {
	var all podList
	query := url.Values{"limit": {listPage}}
	for name := range s.query {
		query.Set(name, s.query.Get(name))
	}
	for {
		var page podList
		if err := getWithin(ctx, s.conn, s.path+"?"+query.Encode(), maxPage, &page); err != nil {
			return nil, err
		}
		all.Items, all.Metadata = append(all.Items, page.Items...), page.Metadata
		if page.Metadata.Continue == "" {
			return &all, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// podPath is where a pod of the list is found, whether that is of one namespace or of all.
func (s *podSource) podPath(pod *podParts) string {
	if strings.Contains(s.path, "/namespaces/") {
		return s.path + "/" + url.PathEscape(pod.Metadata.Name)
	}
	collection := strings.LastIndexByte(s.path, '/')
	return s.path[:collection] + "/namespaces/" + url.PathEscape(pod.Metadata.Namespace) + s.path[collection:] + "/" +
		url.PathEscape(pod.Metadata.Name)
}

// stream reads one container's log.
func (s *podSource) stream(ctx context.Context, pod *podParts, container *containerParts, opts *LogOptions) *logStream {
	stream := newLogStream(ctx, s.conn, s.podPath(pod), opts)
	stream.opts.Container = container.Name
	stream.opts.Follow = opts.Follow && !opts.Previous
	stream.first = instance{uid: pod.Metadata.UID, restarts: container.RestartCount}
	return stream
}

// shownNames is how many container names an error lists.
const shownNames = 10

// check returns an error if the one pod that was asked for is not there, or no pod has the container.
func (l *podList) check(opts *LogOptions, source *podSource) error {
	if len(l.Items) == 0 && source.query.Has("fieldSelector") {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, opts.Name)
	}
	if opts.Container == "" || len(l.Items) == 0 {
		return nil
	}
	var known []string
	for i := range l.Items {
		for _, name := range l.Items[i].containerNames() {
			if name == opts.Container {
				return nil
			}
			if !slices.Contains(known, name) && len(known) <= shownNames {
				known = append(known, name)
			}
		}
	}
	more := ""
	if len(known) > shownNames {
		known, more = known[:shownNames], " and others"
	}
	return fmt.Errorf("no pod has a container %q, but %q%s", opts.Container, known, more)
}

// logFailures collects the errors of containers whose logs cannot be read.
type logFailures struct {
	opts  *LogOptions
	first []error
	count int
}

// shownFailures is how many of many errors are named.
const shownFailures = 5

// add notes the error of one container.
func (f *logFailures) add(from Line, err error) {
	err = fmt.Errorf("pod %q, container %q: %w", from.Pod, from.Container, err)
	if f.opts.OnError != nil {
		f.opts.OnError(from, err)
	}
	f.count++
	if len(f.first) < shownFailures {
		f.first = append(f.first, err)
	}
}

// err returns what was collected as one error.
func (f *logFailures) err() (err error) {
	for _, one := range f.first {
		if err == nil {
			err = one
		} else {
			err = fmt.Errorf("%w; %w", err, one)
		}
	}
	if more := f.count - len(f.first); more > 0 {
		err = fmt.Errorf("%w; and %d more", err, more)
	}
	return err
}
