package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/transport"
	jsoniter "github.com/json-iterator/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// shortestWatch is how long after the beginning of a watch the next one begins at the earliest.
const shortestWatch = time.Second

// watchDefiner sends the group of every object of a definer that changes, until ctx ends. It fails only where trying
// again is no use.
func (c *Client) watchDefiner(ctx context.Context, path string, touched chan<- string) error {
	known := map[string]string{} // resource versions by name
	for first := true; ; first = false {
		var at string
		err := c.untilAnswered(ctx, func() (err error) {
			at, err = c.listDefiner(ctx, path, known, func(name string) {
				if !first {
					send(ctx, touched, name)
				}
			})
			if apierrors.IsNotFound(err) {
				return nil // the server has no such definers, so they cannot change
			}
			return err
		})
		if err != nil || at == "" {
			return err
		}
		if first {
			// What changed between the first snapshot and this list is told by neither.
			send(ctx, touched, "."+everything)
		}
		for at != "" {
			begun := time.Now()
			at = c.followDefiner(ctx, path, at, known, func(name string) { send(ctx, touched, name) })
			// A server that ends every watch at once must not be asked without a break.
			if err := pause(ctx, max(0, shortestWatch-time.Since(begun))); err != nil {
				return err
			}
		}
	}
}

// send passes on the group that an object of this name is about.
func send(ctx context.Context, touched chan<- string, name string) {
	_, group, _ := strings.Cut(name, ".")
	if group == "" { // the core group, which is not asked for alone
		group = everything
	}
	select {
	case touched <- group:
	case <-ctx.Done():
	}
}

// listDefiner compares what there is with what is known, and tells of each difference. Only metadata is asked for:
// definitions are long.
func (c *Client) listDefiner(ctx context.Context, path string, known map[string]string, changed func(name string)) (resourceVersion string, err error) {
	answer, err := get(ctx, c.conn, path, http.Header{"Accept": {
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	}})
	if err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	if err := decodeKind(answer.body, "PartialObjectMetadataList", &list); err != nil {
		return "", fmt.Errorf("GET %s: %w", path, err)
	}
	listed := map[string]bool{}
	for i := range list.Items {
		name, version := list.Items[i].Name, list.Items[i].ResourceVersion
		listed[name] = true
		if known[name] != version {
			known[name] = version
			changed(name)
		}
	}
	for name := range known {
		if !listed[name] {
			delete(known, name)
			changed(name)
		}
	}
	return list.ResourceVersion, nil
}

// followDefiner watches until the connection ends, and returns where to go on, "" to list again.
func (c *Client) followDefiner(ctx context.Context, path, from string, known map[string]string, changed func(name string)) string {
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {from},
		// An end in time, and not for all clients at once, finds out about connections that are dead unnoticed.
		"timeoutSeconds": {strconv.Itoa(240 + rand.IntN(120))}, //nolint:gosec // spread, not secrecy
	}
	response, err := c.conn.Do(ctx, &transport.Request{Path: path, Query: query, Header: http.Header{"Accept": {
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	}}})
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	events := jsoniter.NewDecoder(response.Body)
	for {
		var event struct {
			Type   watch.EventType              `json:"type"`
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return from
		case err != nil, event.Type == watch.Error:
			return ""
		}
		name := event.Object.Name
		from = event.Object.ResourceVersion
		switch event.Type {
		case watch.Added, watch.Modified:
			known[name] = event.Object.ResourceVersion
			changed(name)
		case watch.Deleted:
			delete(known, name)
			changed(name)
		default: // a bookmark
		}
	}
}
