// Package plugins implements admission plugins enabled in kube-apiserver by default: LimitRanger, Priority,
// DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize, RuntimeClass,
// PodTopologyLabels, DefaultIngressClass, CertificateApproval, CertificateSigning, CertificateSubjectRestriction and
// ClusterTrustBundleAttest. Writes affected by missing plugins get a warning.
package plugins

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
)

type object = map[string]any

// Objects are the stored objects for decisions. They are read-only.
type Objects interface {
	List(group, resource, namespace string, at int64) (objects []map[string]any, revision int64, err error)
}

// Request is a write of a built-in kind: an update if Old is not nil, otherwise a creation.
type Request struct {
	Resource               schema.GroupResource
	Subresource, Namespace string
	Object                 map[string]any // changed by Admit
	Old                    map[string]any // read-only
	Objects                Objects
	// Allowed reports whether RBAC allows the user a verb on a virtual resource, such as signers. nil allows everything.
	Allowed func(verb, group, resource, name string) bool
	Warn    func(text string)
}

// Admit runs the mutating plugins in the API server's order. An error is the reason of a rejection.
func Admit(r *Request) error {
	isCreation := r.Old == nil
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
		builtin.AdmitUpdate(r.Resource, r.Object, r.Old)
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
	builtin.Admit(r.Resource, r.Object)
	return nil
}

func (r *Request) admitPod() error {
	r.setLimits()
	if err := r.setPriority(); err != nil {
		return err
	}
	builtin.Admit(r.Resource, r.Object)
	if err := r.setRuntimeClass(); err != nil {
		return err
	}
	r.labelTopology(nested.String(r.Object, "spec", "nodeName"))
	return nil
}

// Validate runs the validating plugins on the object to be stored, and adds the warnings.
func Validate(r *Request) error {
	r.warn()
	switch {
	case r.isOf("pods") && (r.Subresource == "resize" || r.Subresource == "" && r.Old == nil):
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

func (r *Request) isOf(resource string) bool { return r.Resource.String() == resource }

// list returns the stored objects of a resource in a namespace, or in all namespaces for "".
func (r *Request) list(group, resource, namespace string) []map[string]any {
	stored, _, err := r.Objects.List(group, resource, namespace, 0)
	if err != nil {
		return nil
	}
	return stored
}

// find returns a stored cluster-scoped object by name, or nil.
func (r *Request) find(group, resource, name string) object {
	for _, obj := range r.list(group, resource, "") {
		if nested.String(obj, "metadata", "name") == name {
			return obj
		}
	}
	return nil
}
