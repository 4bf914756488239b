// Package plugins has the admission plugins that kube-apiserver runs by default:
// LimitRanger, Priority, DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize,
// RuntimeClass, PodTopologyLabels, DefaultIngressClass, CertificateApproval, CertificateSigning, CertificateSubjectRestriction and
// ClusterTrustBundleAttest. Warnings name the writes that the others could have changed or rejected.
package plugins

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

type object = map[string]any

// Objects are the stored objects that decisions depend on, which are read-only.
type Objects interface {
	List(group, resource, namespace string, at int64) (objects []map[string]any, revision int64, err error)
}

// Request is a creation, or an update if Old is not nil, of a built-in kind.
type Request struct {
	Resource               schema.GroupResource
	Subresource, Namespace string
	Object                 map[string]any // changed by Admit
	Old                    map[string]any // read-only
	Objects                Objects
	// Allowed reports whether the user may do what the verb says with a resource that only RBAC knows; nil allows everything.
	Allowed func(verb, group, resource, name string) bool
	Warn    func(text string)
}

// Admit runs the mutating parts of the plugins in the API server's order. An error is the reason for which a plugin rejects the
// request.
func Admit(r *Request) error {
	isCreation := r.Old == nil
	if r.Subresource != "" {
		if r.isOf("pods") && r.Subresource == "binding" && isCreation {
			r.labelTopology(text(child(r.Object, "target"), "name"))
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
	r.labelTopology(text(child(r.Object, "spec"), "nodeName"))
	return nil
}

// Validate runs the validating parts, on what is about to be stored, and adds the warnings.
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

// list returns the stored objects of a resource in a namespace, or of all if it is "".
func (r *Request) list(group, resource, namespace string) []map[string]any {
	stored, _, err := r.Objects.List(group, resource, namespace, 0)
	if err != nil {
		return nil
	}
	return stored
}

// find returns the stored object of that name of a resource without namespaces, nil if there is none.
func (r *Request) find(group, resource, name string) object {
	for _, obj := range r.list(group, resource, "") {
		if text(child(obj, "metadata"), "name") == name {
			return obj
		}
	}
	return nil
}
