package serve

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// requestToken creates a token of a service account.
func (c *call) requestToken() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	request, err := decodeBody(body)
	if err != nil {
		return err
	}
	c.warnFields(request)
	account, found := c.Store.Get(c.key())
	if !found {
		return errNotFound(c.groupResource(), c.info.Name)
	}
	if err := c.checkBoundObject(account, request); err != nil {
		return err
	}
	token, err := c.Access.RequestToken(account, request)
	if err != nil {
		return err
	}
	return c.respond(write.Result{Object: token, Code: http.StatusCreated})
}

// boundObject is spec.boundObjectRef of a TokenRequest.
type boundObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// checkBoundObject rejects a TokenRequest for a service account if its bound object does not exist, like the API server.
func (c *call) checkBoundObject(account, request map[string]any) error {
	spec := nested.Map(request, "spec")
	content, isMap := spec["boundObjectRef"].(map[string]any)
	if !isMap {
		return nil
	}
	var bound boundObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &bound); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	kind := schema.FromAPIVersionAndKind(bound.APIVersion, bound.Kind)
	plural, isKnown := map[string]string{"Pod": "pods", "Node": "nodes", "Secret": "secrets"}[kind.Kind]
	if !isKnown || kind.Group != "" {
		return apierrors.NewBadRequest("cannot bind token to object of type " + kind.String())
	}
	key := store.Key{Resource: plural, Name: bound.Name}
	if kind.Kind != "Node" {
		key.Namespace = c.info.Namespace
	}
	obj, found := c.Store.Get(key)
	if !found {
		return errNotFound(schema.GroupResource{Resource: plural}, bound.Name)
	}
	accountName := nameOf(account)
	if podSpec := nested.Map(obj, "spec"); kind.Kind == "Pod" && podSpec["serviceAccountName"] != accountName {
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", accountName))
	}
	metadata := nested.Map(obj, "metadata")
	if bound.UID != "" && metadata["uid"] != bound.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: kind.Kind}, bound.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", bound.UID))
	}
	return nil
}

func nameOf(obj map[string]any) string {
	name := nested.String(obj, "metadata", "name")
	return name
}
