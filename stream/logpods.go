package stream

import (
	"context"
	"net/url"
	"strings"
)

// podList is a list of pods and the path it is found at.
type podList struct {
	path     string
	Metadata struct{ ResourceVersion, Continue string }
	Items    []podParts
}

// listPods lists what a selector matches, page by page.
func listPods(ctx context.Context, pods Target, selector string) (*podList, error) {
	path, err := pods.Path("")
	if err != nil {
		return nil, err
	}
	all := &podList{path: path}
	query := url.Values{"limit": {"500"}}
	if selector != "" {
		query.Set("labelSelector", selector)
	}
	for {
		var page podList
		if err := get(ctx, pods.Conn(), path+"?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		all.Items, all.Metadata = append(all.Items, page.Items...), page.Metadata
		if page.Metadata.Continue == "" {
			return all, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// podPath is where a pod of the list is found, whether that is of one namespace or of all.
func (l *podList) podPath(pod *podParts) string {
	if strings.Contains(l.path, "/namespaces/") {
		return l.path + "/" + url.PathEscape(pod.Metadata.Name)
	}
	collection := strings.LastIndexByte(l.path, '/')
	return l.path[:collection] + "/namespaces/" + url.PathEscape(pod.Metadata.Namespace) + l.path[collection:] + "/" +
		url.PathEscape(pod.Metadata.Name)
}

// stream reads one container's log.
func (l *podList) stream(ctx context.Context, pods Target, pod *podParts, container *containerParts, opts *LogOptions) *logStream {
	stream := newLogStream(ctx, pods, l.podPath(pod), opts)
	stream.opts.Container = container.Name
	stream.opts.Follow = opts.Follow && !opts.Previous
	stream.first = instance{pod.Metadata.UID, container.RestartCount}
	return stream
}
