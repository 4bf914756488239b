package dynamic

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// At gives the handle, and the name of the object, that a path of the API means, as kubectl -v=6 and audit logs show it:
// /apis/apps/v1/namespaces/shop/deployments/web/scale. The name is "" where the path is that of a collection; a
// namespaced resource's path without a namespace means all of them. [Resource.Path] is the way back. An unknown
// resource is an error of [restmapper.Mapper.Resource]. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func (c *Client) At(ctx context.Context, path string) (r *Resource, name string, err error) {
	place, err := parsePath(path)
	if err != nil {
		return nil, "", fmt.Errorf("find the resource at %q: %w", path, err)
	}
	mapping, err := c.mapper.Resource(ctx, place.gvr.Resource+"."+place.gvr.Version+"."+place.gvr.Group)
	if err != nil {
		return nil, "", fmt.Errorf("find the resource at %q: %w", path, err)
	}
	r = c.handle(mapping)
	switch {
	case mapping.GVR != place.gvr:
		return nil, "", fmt.Errorf("find the resource at %q: the path must name the resource in full: %s", path, mapping.GVR.Resource)
	case place.namespace != "" && !mapping.Namespaced:
		return nil, "", fmt.Errorf("find the resource at %q: %s is cluster-scoped: leave namespaces/%s out", path, mapping.GVK.Kind, place.namespace)
	case place.namespace != "":
		r = r.In(place.namespace)
	case mapping.Namespaced && place.name != "":
		return nil, "", fmt.Errorf("find the resource at %q: %s is namespaced: put namespaces/NAME before %s", path, mapping.GVK.Kind, mapping.GVR.Resource)
	case mapping.Namespaced:
		r = r.AllNamespaces()
	}
	if place.sub != "" {
		r = r.Sub(place.sub)
	}
	return r, place.name, nil
}

// place is what the segments of a path say.
type place struct {
	gvr                  schema.GroupVersionResource
	namespace, name, sub string
}

// parsePath splits a path as the API server does.
func parsePath(path string) (place, error) {
	var at place
	if strings.ContainsAny(path, "?#") {
		return at, fmt.Errorf("a query is no part of it: the verbs take options")
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return at, err
		}
		if reason := unfitForPath(plain); reason != "" {
			return at, fmt.Errorf("its part %q %s", part, reason)
		}
		parts[i] = plain
	}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		at.gvr.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		at.gvr.Group, at.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return at, fmt.Errorf("it is not of the form /api/VERSION/… or /apis/GROUP/VERSION/…, with a resource behind that")
	}
	// A namespace is a resource itself, with subresources of its own.
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return at, fmt.Errorf("it goes on behind the subresource %s", parts[2])
	}
	parts = append(parts, "", "")
	at.gvr.Resource, at.name, at.sub = parts[0], parts[1], parts[2]
	return at, nil
}
