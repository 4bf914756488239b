package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// SelectableFields returns the fields of a built-in object supported by field selectors, with their values. All resources have
// metadata.name. Most resources have metadata.namespace, including cluster-scoped resources, with an empty value.
func SelectableFields(resource schema.GroupResource, obj map[string]any) fields.Set {
	metadata := nested.Map(obj, "metadata")
	set := fields.Set{"metadata.name": nested.String(metadata, "name"), "metadata.namespace": nested.String(metadata, "namespace")}
	spec := nested.Map(obj, "spec")
	status := nested.Map(obj, "status")
	switch resource.String() {
	case "pods":
		podFields(set, spec, status)
	case "nodes":
		delete(set, "metadata.namespace")
		set["spec.unschedulable"] = fmt.Sprint(nested.Bool(spec, "unschedulable"))
	case "namespaces":
		delete(set, "metadata.namespace")
		set["status.phase"] = nested.String(status, "phase")
	case "secrets":
		set["type"] = nested.String(obj, "type")
	case "services":
		set["spec.clusterIP"] = nested.String(spec, "clusterIP")
		set["spec.type"] = nested.String(spec, "type")
	case "replicationcontrollers":
		set["status.replicas"] = fmt.Sprint(nested.Int64(status, "replicas"))
	case "jobs.batch":
		set["status.successful"] = fmt.Sprint(nested.Int64(status, "succeeded"))
	case "certificatesigningrequests.certificates.k8s.io", "clustertrustbundles.certificates.k8s.io":
		delete(set, "metadata.namespace")
		set["spec.signerName"] = nested.String(spec, "signerName")
	case "podcertificaterequests.certificates.k8s.io":
		delete(set, "metadata.namespace")
		for _, name := range []string{"signerName", "podName", "nodeName"} {
			set["spec."+name] = nested.String(spec, name)
		}
	case "resourceslices.resource.k8s.io":
		delete(set, "metadata.namespace")
		set["spec.nodeName"] = nested.String(spec, "nodeName")
		set["spec.driver"] = nested.String(spec, "driver")
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
		set["spec."+name] = nested.String(spec, name)
	}
	set["spec.hostNetwork"] = fmt.Sprint(nested.Bool(spec, "hostNetwork"))
	set["status.phase"] = nested.String(status, "phase")
	set["status.nominatedNodeName"] = nested.String(status, "nominatedNodeName")
	ip := ""
	if ips := nested.Maps(status, "podIPs"); len(ips) > 0 {
		ip = nested.String(ips[0], "ip")
	}
	set["status.podIP"] = ip
	set["status.podIPs"] = "" // the server supports status.podIPs without a value
	set["spec.host"] = nested.String(spec, "nodeName")
}

func eventFields(set fields.Set, event object, regarding, source, reporting string) {
	target := nested.Map(event, regarding)
	for _, name := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		set[regarding+"."+name] = nested.String(target, name)
	}
	set["reason"] = nested.String(event, "reason")
	set["type"] = nested.String(event, "type")
	set[reporting] = nested.String(event, reporting)
	set["source"] = nested.String(event, source, "component")
	if set["source"] == "" {
		set["source"] = set[reporting]
	}
}
