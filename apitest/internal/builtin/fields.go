package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SelectableFields returns the fields of a built-in object supported by field selectors, with their values. All resources have
// metadata.name. Most resources have metadata.namespace, including cluster-scoped resources, with an empty value.
func SelectableFields(resource schema.GroupResource, obj map[string]any) fields.Set {
	metadata := child(obj, "metadata")
	set := fields.Set{"metadata.name": text(metadata, "name"), "metadata.namespace": text(metadata, "namespace")}
	spec := child(obj, "spec")
	status := child(obj, "status")
	switch resource.String() {
	case "pods":
		podFields(set, spec, status)
	case "nodes":
		delete(set, "metadata.namespace")
		set["spec.unschedulable"] = fmt.Sprint(truth(spec, "unschedulable"))
	case "namespaces":
		delete(set, "metadata.namespace")
		set["status.phase"] = text(status, "phase")
	case "secrets":
		set["type"] = text(obj, "type")
	case "services":
		set["spec.clusterIP"] = text(spec, "clusterIP")
		set["spec.type"] = text(spec, "type")
	case "replicationcontrollers":
		set["status.replicas"] = fmt.Sprint(number(status, "replicas"))
	case "jobs.batch":
		set["status.successful"] = fmt.Sprint(number(status, "succeeded"))
	case "certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io":
		delete(set, "metadata.namespace")
		set["spec.signerName"] = text(spec, "signerName")
	case "podcertificaterequests.certificates.k8s.io":
		delete(set, "metadata.namespace")
		for _, name := range []string{"signerName", "podName", "nodeName"} {
			set["spec."+name] = text(spec, name)
		}
	case "resourceslices.resource.k8s.io":
		delete(set, "metadata.namespace")
		set["spec.nodeName"] = text(spec, "nodeName")
		set["spec.driver"] = text(spec, "driver")
	case "events":
		eventFields(set, obj, "involvedObject", "source", "reportingComponent")
	case "events.events.k8s.io":
		eventFields(set, obj, "regarding", "deprecatedSource", "reportingController")
		delete(set, "source")
	}
	return set
}

func podFields(set fields.Set, spec, status object) {
	for _, name := range []string{"nodeName", "restartPolicy", "schedulerName", "serviceAccountName"} {
		set["spec."+name] = text(spec, name)
	}
	set["spec.hostNetwork"] = fmt.Sprint(truth(spec, "hostNetwork"))
	set["status.phase"] = text(status, "phase")
	set["status.nominatedNodeName"] = text(status, "nominatedNodeName")
	ip := ""
	if ips := objects(status, "podIPs"); len(ips) > 0 {
		ip = text(ips[0], "ip")
	}
	set["status.podIP"] = ip
	set["status.podIPs"] = "" // the server supports status.podIPs without a value
	set["spec.host"] = text(spec, "nodeName")
}

func eventFields(set fields.Set, event object, regarding, source, reporting string) {
	target := child(event, regarding)
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		set[regarding+"."+name] = text(target, name)
	}
	set["reason"] = text(event, "reason")
	set["type"] = text(event, "type")
	set[reporting] = text(event, reporting)
	set["source"] = text(child(event, source), "component")
	if set["source"] == "" {
		set["source"] = set[reporting]
	}
}

// UnknownFieldError returns the API server's error for a field missing in SelectableFields.
func UnknownFieldError(resource schema.GroupResource, name string) error {
	switch resource.String() {
	case "jobs.batch":
		return fmt.Errorf("field label %q not supported for Job", name)
	case "resourceslices.resource.k8s.io":
		return fmt.Errorf("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s", name)
	case "pods", "nodes", "namespaces", "secrets", "services", "replicationcontrollers", "events", "events.events.k8s.io",
		"certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io",
		"podcertificaterequests.certificates.k8s.io":
		return fmt.Errorf("field label not supported: %s", name)
	}
	return fmt.Errorf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
}
