package clustercopy

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// maxRestarts is the maximum number of restarts of a list after its revision has expired.
const maxRestarts = 3

// result is the outcome of the lists of a resource.
type result struct {
	objects         []*unstructured.Lazy
	resourceVersion string
	isListed        bool // in a namespace or more
	omitted         []Omission
	err             error
}

func (r *result) omit(resource *discovery.Resource, namespace string, err error) {
	r.omitted = append(r.omitted, Omission{
		Group: resource.GVR.Group, Version: resource.GVR.Version, Resource: resource.GVR.Resource, Namespace: namespace, Reason: err.Error(),
	})
}

// list lists a resource in the selected namespaces.
func (c *copier) list(ctx context.Context, resource *discovery.Resource, r *result) error {
	handle := dynamic.As[unstructured.Lazy](c.client.ForAPIResource(resource))
	handles := []*dynamic.Handle[unstructured.Lazy]{handle}
	if resource.Namespaced {
		handles[0] = handle.AllNamespaces()
	}
	namespaces := []string{""}
	if resource.Namespaced && c.opts.Namespaces != nil {
		handles = handles[:0]
		namespaces = c.opts.Namespaces
		for _, namespace := range namespaces {
			handles = append(handles, handle.Namespace(namespace))
		}
	}
	for i, one := range handles {
		err := c.listOne(ctx, one, r)
		if isOmission(err) && resource.GVR.GroupResource().String() == "namespaces" && c.opts.Namespaces != nil {
			err = c.getNamespaces(ctx, one, r)
		}
		if isOmission(err) {
			r.omit(resource, namespaces[i], err)
			continue
		}
		if err != nil {
			return err
		}
		r.isListed = true
	}
	c.report(resource, 0, 1)
	if resource.GVR.Group == "" && resource.GVR.Resource == "secrets" && !c.opts.SecretData && len(r.objects) > 0 {
		return c.withoutSecretData(r)
	}
	return nil
}

// listOne adds the objects of a list to r, at the copy's revision or else at the latest revision.
func (c *copier) listOne(ctx context.Context, handle *dynamic.Handle[unstructured.Lazy], r *result) error {
	resource := handle.APIResource()
	opts := metav1.ListOptions{}
	if !always[resource.GVR.GroupResource()] {
		opts.LabelSelector = c.opts.LabelSelector
	}
	isOfOtherStore := c.aggregated[resource.GVR.GroupVersion()] || resource.GVR.Resource == "events"
	if c.copy.ResourceVersion != "" && !isOfOtherStore {
		opts.ResourceVersion = c.copy.ResourceVersion
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		err := c.pages(ctx, handle, opts, r)
		if err == nil || !isRevisionMissing(err) {
			return err
		}
		opts.ResourceVersion = ""
		opts.ResourceVersionMatch = ""
	}
	return c.pages(ctx, handle, opts, r)
}

// pages adds the objects of all pages of a list to r.
func (c *copier) pages(ctx context.Context, handle *dynamic.Handle[unstructured.Lazy], opts metav1.ListOptions, r *result) error {
	before := len(r.objects)
	reported := before
	resourceVersion := ""
	restarts := 0
	pages := &dynamic.PageOptions{
		OnPage: func(meta metav1.ListMeta) {
			resourceVersion = meta.ResourceVersion
			c.report(handle.APIResource(), len(r.objects)-reported, 0)
			reported = len(r.objects)
		},
		OnExpired: func(error) dynamic.ExpiryPolicy {
			if restarts == maxRestarts {
				return dynamic.ExpiryFail
			}
			restarts++
			c.report(handle.APIResource(), before-reported, 0)
			r.objects = r.objects[:before]
			reported = before
			return dynamic.ExpiryRestart
		},
	}
	for obj, err := range handle.WithPageOptions(pages).List(ctx, &opts) {
		if err != nil {
			c.report(handle.APIResource(), before-reported, 0)
			r.objects = r.objects[:before]
			return cause(ctx, err)
		}
		r.objects = append(r.objects, obj)
	}
	if r.isListed && r.resourceVersion != resourceVersion {
		resourceVersion = ""
	}
	r.resourceVersion = resourceVersion
	return nil
}

// cause adds the cause of an ended context: firstError looks for it.
func cause(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", err, ended)
	}
	return err
}

// getNamespaces adds the selected namespaces for a user without the right to list namespaces.
func (c *copier) getNamespaces(ctx context.Context, handle *dynamic.Handle[unstructured.Lazy], r *result) error {
	for _, name := range c.opts.Namespaces {
		obj, err := handle.Get(ctx, name, nil)
		switch {
		case err == nil:
			r.objects = append(r.objects, obj)
		case isOmission(err):
			r.omit(handle.APIResource(), name, err)
		default:
			return cause(ctx, err)
		}
	}
	return nil
}

// isOmission reports whether the server has sent no objects, because they are forbidden or their server is unavailable.
func isOmission(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err)
}

// isRevisionMissing reports whether a list may succeed at the latest revision.
func isRevisionMissing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return false
	}
	return true
}

// report adds to the progress and calls OnProgress.
func (c *copier) report(resource *discovery.Resource, objects, lists int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.Resource = resource.GVR
	c.progress.Objects += objects
	c.progress.Lists += lists
	if c.opts.OnProgress != nil {
		c.opts.OnProgress(c.progress)
	}
}
