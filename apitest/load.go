package apitest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/structural"
	"github.com/anykind/anykind/apitest/internal/write"
	"github.com/anykind/anykind/unstructured"
)

// load creates the objects of a fresh cluster, Options.Copy and Options.Objects.
func (s *Server) load() error {
	for key, obj := range freshCluster(s.clock.Now()) {
		if _, err := s.store.Create(key, obj); err != nil {
			return err
		}
	}
	if s.options.RBAC {
		roles, err := access.Bootstrap()
		if err != nil {
			return err
		}
		for _, role := range roles {
			if err := s.createOne(s.ctx, role); err != nil {
				return err
			}
		}
	}
	return s.loadObjects()
}

func (s *Server) loadObjects() error {
	resource := s.registry.Lookup("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	var definitions, rest []*unstructured.Object
	for _, obj := range s.options.Objects {
		if obj.GroupVersionKind() == resource.GroupVersionKind() {
			definitions = append(definitions, obj)
		} else {
			rest = append(rest, obj)
		}
	}
	prepared, err := s.prepareDefinitions(resource, definitions)
	if err != nil {
		return err
	}
	for _, definition := range prepared {
		if text := structural.RulesNotValidated(definition); text != "" && s.options.Rules == nil {
			name := (&unstructured.Object{Object: definition}).GetName()
			s.warnOfCreate(resource, "", name, []string{"apitest: not validated: " + text})
		}
	}
	if err := s.crds.Load(prepared); err != nil {
		return err
	}
	if err := s.loadCopy(); err != nil {
		return err
	}
	return s.Create(s.ctx, rest...)
}

// prepareDefinitions returns definitions in their stored form. It runs on all processors, because it takes most of the start time
// of a server.
func (s *Server) prepareDefinitions(resource *kinds.Resource, objects []*unstructured.Object) ([]map[string]any, error) {
	prepared := make([]map[string]any, len(objects))
	errs := make([]error, len(objects))
	var group sync.WaitGroup
	workers := min(goruntime.GOMAXPROCS(0), len(objects))
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(objects); i += workers {
				prepared[i], errs[i] = s.prepareDefinition(resource, objects[i])
			}
		})
	}
	group.Wait()
	return prepared, errors.Join(errs...)
}

// prepareDefinition returns a definition in its stored form. It has no managedFields: computing them takes as long as starting a
// hundred servers.
func (s *Server) prepareDefinition(resource *kinds.Resource, obj *unstructured.Object) (map[string]any, error) {
	kind := obj.GroupVersionKind()
	target := fmt.Sprintf("create %s %q", kind.Kind, obj.GetName())
	definition, _, err := builtin.Decode(kind, obj.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target, err)
	}
	builtin.Default(kind, definition)
	builtin.PrepareForCreate(resource.GroupResource(), definition)
	errs, _ := builtin.Validate(resource.GroupResource(), "", definition, nil)
	if s.options.Rules != nil && len(errs) == 0 && structural.RulesNotValidated(definition) != "" {
		errs = s.options.Rules.ValidateDefinition(s.ctx, definition, nil)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", target, apierrors.NewInvalid(kind.GroupKind(), obj.GetName(), errs))
	}
	prepared := &unstructured.Object{Object: definition}
	prepared.SetUID(uuid.NewUUID())
	prepared.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	return definition, nil
}

// Create creates objects in the server, without a connection. Namespaces and definitions come first. Objects are defaulted and
// validated like requests over HTTP, and may have a status. Missing namespaces are created. An existing object is an error.
func (s *Server) Create(ctx context.Context, objects ...*unstructured.Object) error {
	for _, obj := range inLoadOrder(objects) {
		if err := s.createOne(ctx, obj.Object); err != nil {
			return err
		}
	}
	return nil
}

// inLoadOrder returns objects with namespaces first, and then definitions.
func inLoadOrder(objects []*unstructured.Object) []*unstructured.Object {
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Object) int { return cmp.Compare(loadOrder(a), loadOrder(b)) })
	return ordered
}

func loadOrder(obj *unstructured.Object) int {
	switch obj.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

func (s *Server) createOne(ctx context.Context, content map[string]any) error {
	obj := &unstructured.Object{Object: content}
	target := fmt.Sprintf("create %s %q", obj.GetKind(), obj.GetName())
	req, err := s.requestFor(ctx, "create", obj)
	if err != nil {
		return err
	}
	resource := req.Resource
	result, err := s.writer.Create(ctx, req, write.Body{Object: runtime.DeepCopyJSON(content)})
	s.warnOfCreate(resource, req.Namespace, obj.GetName(), result.Warnings)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if resource.Definition != nil || resource.Group == "apiextensions.k8s.io" {
		s.crds.Settle()
	}
	status, hasStatus := content["status"]
	if _, hasSubresource := resource.Subresources["status"]; !hasStatus || !hasSubresource || resource.Plural == "customresourcedefinitions" {
		return nil
	}
	return s.setStatus(ctx, req, target, result.Object, status)
}

// requestFor returns the request that writes obj to its resource. It creates a missing namespace.
func (s *Server) requestFor(ctx context.Context, verb string, obj *unstructured.Object) (*write.Request, error) {
	resource := s.registry.OfKind(obj.GroupVersionKind())
	if resource == nil {
		return nil, fmt.Errorf("%s %s %q: the server has no kind %s (a definition must be created before its objects)",
			verb, obj.GetKind(), obj.GetName(), obj.GroupVersionKind())
	}
	req := &write.Request{Resource: resource, User: admin(), UserAgent: "apitest"}
	if resource.Namespaced {
		req.Namespace = cmp.Or(obj.GetNamespace(), "default")
		if err := s.ensureNamespace(ctx, req.Namespace); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func (s *Server) setStatus(ctx context.Context, req *write.Request, target string, created map[string]any, status any) error {
	obj := (&unstructured.Object{Object: created}).DeepCopy()
	obj.Object["status"] = runtime.DeepCopyJSONValue(status)
	update := *req
	update.Name = obj.GetName()
	update.Subresource = "status"
	if _, err := s.writer.Update(ctx, &update, write.Body{Object: obj.Object}); err != nil {
		return fmt.Errorf("%s: status: %w", target, err)
	}
	return nil
}

func (s *Server) ensureNamespace(ctx context.Context, name string) error {
	if _, found := s.store.Get(namespaceKey(name)); found {
		return nil
	}
	err := s.createOne(ctx, namespace(name))
	if status := (apierrors.APIStatus)(nil); errors.As(err, &status) && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
