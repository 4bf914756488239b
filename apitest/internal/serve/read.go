package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/limits"
	"github.com/anykind/anykind/apitest/internal/podstream"
	"github.com/anykind/anykind/apitest/internal/table"
	"github.com/anykind/anykind/apitest/internal/write"
)

// get responds with an object.
func (c *call) get() error {
	m, found := negotiate(c.req, false, "Table", "PartialObjectMetadata")
	if !found {
		return c.errNotAcceptable(acceptable)
	}
	if err := c.awaitVersion(c.req.URL.Query().Get("resourceVersion")); err != nil {
		return err
	}
	stored, exists := c.Store.Get(c.key())
	if !exists {
		return errNotFound(c.groupResource(), c.info.Name)
	}
	view, err := c.Writer.View(c.req.Context(), c.resource, stored)
	if err != nil {
		return err
	}
	obj, err := c.transform(m, view, false, "")
	if err != nil {
		return err
	}
	writeObject(c.w, c.req, m, http.StatusOK, obj)
	return nil
}

// awaitVersion waits for a resourceVersion, with the API server's timeout.
func (c *call) awaitVersion(version string) error {
	if version == "" || version == "0" {
		return nil
	}
	revision, err := parseVersion(version)
	if err != nil {
		return err // like the API server's storage, as a Status 500
	}
	return c.awaitRevision(revision)
}

func (c *call) serveSubresource() error {
	subresource, found := c.resource.Subresources[c.info.Subresource]
	if found && c.resource.Group == "" && c.Streams.Serve(c.w, c.req, podstream.Target{
		Resource: c.resource.Plural, Namespace: c.info.Namespace, Name: c.info.Name, Subresource: c.info.Subresource, Rest: c.info.Rest,
	}) {
		return nil
	}
	if !found || len(c.info.Rest) > 0 {
		if c.resource.Definition != nil {
			return errNotFound(c.groupResource(), c.info.Name)
		}
		return errNoResource()
	}
	if !slices.Contains(subresource.Verbs, c.info.Verb) {
		if c.resource.Definition != nil {
			return apierrors.NewMethodNotSupported(c.groupResource(), c.info.Verb)
		}
		return errNoMethod()
	}
	switch {
	case c.info.Verb == "get" && c.info.Subresource == "scale":
		return c.getScale()
	case c.info.Verb == "get":
		return c.get()
	case c.info.Verb == "create" && c.info.Subresource == "token" && c.resource.Plural == "serviceaccounts":
		return c.requestToken()
	}
	return c.write()
}

func (c *call) getScale() error {
	m, found := negotiate(c.req, false, "PartialObjectMetadata")
	if !found {
		return c.errNotAcceptable(acceptable)
	}
	if err := c.awaitVersion(c.req.URL.Query().Get("resourceVersion")); err != nil {
		return err
	}
	stored, exists := c.Store.Get(c.key())
	if !exists {
		return errNotFound(c.groupResource(), c.info.Name)
	}
	view, err := c.Writer.View(c.req.Context(), c.resource, stored)
	if err != nil {
		return err
	}
	scale, err := write.ScaleOf(c.resource, view)
	if err != nil {
		return err
	}
	obj, err := c.transform(m, scale, false, "")
	if err != nil {
		return err
	}
	writeObject(c.w, c.req, m, http.StatusOK, obj)
	return nil
}

// transform converts an object or a list to the negotiated form. kind is the type of its watch event, or "". The row of a
// bookmark always includes metadata, for the annotation k8s.io/initial-events-end.
func (c *call) transform(m media, obj map[string]any, isLaterEvent bool, kind watch.EventType) (any, error) {
	if m.as == "" || obj["kind"] == "Status" && obj["apiVersion"] == "v1" {
		return obj, nil
	}
	if m.as != "Table" {
		return table.PartialMetadata(c.resource, obj, m.asOf), nil
	}
	include := metav1.IncludeObjectPolicy(c.req.URL.Query().Get("includeObject"))
	switch include {
	case "":
		include = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", include))
	}
	if kind == watch.Bookmark && include == metav1.IncludeNone {
		include = metav1.IncludeMetadata
	}
	printed, warning, err := table.Of(c.resource, obj, table.Options{Version: m.asOf, Include: include, Now: c.Now(), NoColumns: isLaterEvent})
	if warning != "" && !isLaterEvent {
		c.warn(warning)
	}
	return printed, err
}

// decodeBody decodes the body of a request that is not a write.
func decodeBody(body write.Body) (map[string]any, error) {
	if body.Err != nil {
		return nil, body.Err
	}
	if body.Object != nil {
		return body.Object, nil
	}
	data := body.Data
	if body.MediaType == "application/yaml" {
		if err := limits.CheckAliases(data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		data = converted
	}
	var obj map[string]any
	if err := json.Unmarshal(data, &obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, nil
}

func parseVersion(version string) (int64, error) {
	revision, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", version, unwrapNumber(version, err))
	}
	return int64(revision), nil
}

func unwrapNumber(version string, err error) error {
	if _, unsigned := strconv.ParseUint(version, 10, 64); unsigned != nil {
		return unsigned
	}
	return err
}
