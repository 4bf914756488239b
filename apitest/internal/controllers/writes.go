package controllers

import (
	"context"
	"fmt"
	"net/url"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// request returns a write by the controllers' user.
func (c *Controller) request(key store.Key, subresource string) (*write.Request, error) {
	versions := c.Registry.Versions(key.Group, key.Resource)
	if len(versions) == 0 {
		return nil, fmt.Errorf("write %s %q: the resource is not served", key.Resource, key.Name)
	}
	return &write.Request{
		Resource: versions[0], Subresource: subresource, Namespace: key.Namespace, Name: key.Name, Query: url.Values{},
		User:      access.User{Name: "system:kube-controller-manager", Groups: []string{access.GroupMasters, "system:authenticated"}},
		UserAgent: "kube-controller-manager",
	}, nil
}

// create creates an object in the collection of key. An existing object is not an error.
func (c *Controller) create(ctx context.Context, key store.Key, obj object) error {
	key.Name = ""
	request, err := c.request(key, "")
	if err != nil {
		return err
	}
	_, err = c.Writer.Create(ctx, request, write.Body{Object: obj})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// update replaces an object or its subresource. It is a no-op if obj equals stored.
func (c *Controller) update(ctx context.Context, key store.Key, subresource string, obj, stored object) error {
	if reflect.DeepEqual(obj, stored) {
		return nil
	}
	request, err := c.request(key, subresource)
	if err != nil {
		return err
	}
	if request.Resource.APIVersion() != nested.String(obj, "apiVersion") {
		for _, version := range c.Registry.Versions(key.Group, key.Resource) {
			if version.APIVersion() == nested.String(obj, "apiVersion") {
				request.Resource = version
			}
		}
	}
	_, err = c.Writer.Update(ctx, request, write.Body{Object: obj})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// delete deletes an object with a UID precondition. options are additional DeleteOptions.
func (c *Controller) delete(ctx context.Context, key store.Key, uid string, options object) error {
	request, err := c.request(key, "")
	if err != nil {
		return err
	}
	body := object{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": object{"uid": uid}}
	for name, value := range options {
		body[name] = value
	}
	_, err = c.Writer.Delete(ctx, request, write.Body{Object: body})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
