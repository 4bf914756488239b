package admission

import (
	"cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

type object = map[string]any

// pluginRequest is a write of a built-in kind for the plugins: an update if OldObject is not nil, otherwise a creation.
type pluginRequest struct {
	*Attributes
	resource  schema.GroupResource
	namespace string // "" for a cluster-scoped object
	store     *store.Store
	access    *access.Access // nil allows everything
}

// runPlugins runs a step of the plugins that kube-apiserver enables by default: LimitRanger, Priority, DefaultTolerationSeconds,
// DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize, RuntimeClass, PodTopologyLabels,
// DefaultIngressClass, CertificateApproval, CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest. A write
// that a missing plugin would affect gets a warning.
func (a *Admission) runPlugins(step func(*pluginRequest) error, attributes *Attributes) error {
	resource := attributes.Resource
	if resource.Definition != nil || attributes.Operation != Create && attributes.Operation != Update {
		return nil
	}
	r := &pluginRequest{Attributes: attributes, resource: resource.GroupResource(), store: a.config.Store, access: a.config.Access}
	if resource.Namespaced {
		r.namespace = attributes.Namespace
	}
	if err := step(r); err != nil {
		name := cmp.Or(nested.String(r.Object, "metadata", "name"), nested.String(r.Object, "metadata", "generateName"))
		return apierrors.NewForbidden(r.resource, name, err)
	}
	return nil
}

// mutate runs the mutating plugins in the API server's order. An error is the reason of a rejection.
func (r *pluginRequest) mutate() error {
	isCreation := r.OldObject == nil
	if r.Subresource != "" {
		if r.isOf("pods") && r.Subresource == "binding" && isCreation {
			r.labelTopology(nested.String(r.Object, "target", "name"))
		}
		if r.isOf("pods") && r.Subresource == "resize" {
			r.setLimits()
		}
		return nil
	}
	if !isCreation {
		builtin.AdmitUpdate(r.resource, r.Object, r.OldObject)
		return nil
	}
	switch {
	case r.isOf("pods"):
		return r.admitPod()
	case r.isOf("persistentvolumeclaims"):
		r.setStorageClass()
	case r.isOf("ingresses.networking.k8s.io"):
		r.setIngressClass()
	}
	builtin.Admit(r.resource, r.Object)
	return nil
}

func (r *pluginRequest) admitPod() error {
	r.setLimits()
	if err := r.setPriority(); err != nil {
		return err
	}
	builtin.Admit(r.resource, r.Object)
	if err := r.setRuntimeClass(); err != nil {
		return err
	}
	r.labelTopology(nested.String(r.Object, "spec", "nodeName"))
	return nil
}

// validate runs the validating plugins on the object to be stored, and adds the warnings.
func (r *pluginRequest) validate() error {
	r.warn()
	switch {
	case r.isOf("pods") && (r.Subresource == "resize" || r.Subresource == "" && r.OldObject == nil):
		if err := r.checkLimits(); err != nil {
			return err
		}
		if r.Subresource == "" {
			return r.checkOverhead()
		}
	case r.isOf(certificateRequests):
		return r.checkCertificate()
	case r.Subresource != "":
	case r.isOf("clustertrustbundles.certificates.k8s.io"):
		return r.checkBundle()
	case r.isOf("persistentvolumeclaims"):
		if err := r.checkLimits(); err != nil {
			return err
		}
		return r.checkExpansion()
	case r.isOf("priorityclasses.scheduling.k8s.io"):
		return r.checkDefaultPriority()
	}
	return nil
}

func (r *pluginRequest) isOf(resource string) bool { return r.resource.String() == resource }

// list returns the stored objects of a resource in a namespace, or in all namespaces for "".
func (r *pluginRequest) list(group, resource, namespace string) []map[string]any {
	stored, _, err := r.store.List(group, resource, namespace, 0)
	if err != nil {
		return nil
	}
	return stored
}

// find returns a stored cluster-scoped object by name, or nil.
func (r *pluginRequest) find(group, resource, name string) object {
	for _, obj := range r.list(group, resource, "") {
		if nested.String(obj, "metadata", "name") == name {
			return obj
		}
	}
	return nil
}

// allows reports whether the user is authorized for a verb on a cluster-scoped resource, such as signers.
func (r *pluginRequest) allows(verb, group, resource, name string) bool {
	if r.access == nil {
		return true
	}
	allowed, _ := r.access.Allowed(&r.User, access.Attributes{Verb: verb, Group: group, Resource: resource, Name: name})
	return allowed
}
