package builtin

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// rules describe how the API server prepares writes of a resource.
type rules struct {
	status     bool // create and update reset the status; an update of subresource status resets everything else
	generation bool // counts changes of the spec
	create     func(obj object)
	update     func(obj, old object)
	initial    object // the status of a new object, else {}
}

// rulesOf returns the rules of a built-in resource. ok is false without rules.
func rulesOf(resource schema.GroupResource) (r rules, ok bool) {
	switch resource.String() {
	case "pods":
		return rules{status: true, generation: true, create: createPod}, true
	case "namespaces":
		return rules{status: true, create: createNamespace, update: updateNamespace, initial: object{"phase": "Active"}}, true
	case "nodes":
		return rules{status: true, create: func(object) {}}, true
	case "secrets":
		return rules{update: func(secret, old object) { setIfAbsent(secret, "type", old["type"]) }}, true
	case "persistentvolumes":
		return rules{status: true, initial: object{"phase": "Pending"}}, true
	case "persistentvolumeclaims":
		return rules{status: true, initial: object{"phase": "Pending"}, create: createClaim}, true
	case "services":
		return rules{status: true, update: updateService, initial: object{"loadBalancer": object{}}}, true
	case "resourcequotas", "replicationcontrollers":
		return rules{status: true, generation: resource.Resource != "resourcequotas"}, true
	case "deployments.apps", "replicasets.apps", "statefulsets.apps", "cronjobs.batch", "ingresses.networking.k8s.io",
		"poddisruptionbudgets.policy", "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io":
		return rules{status: true, generation: true}, true
	case "customresourcedefinitions.apiextensions.k8s.io":
		return rules{status: true, generation: true, create: createDefinition, update: updateDefinition}, true
	case "jobs.batch":
		return rules{status: true, generation: true, create: createJob}, true
	case "daemonsets.apps":
		return rules{status: true, generation: true, create: createDaemonSet, update: updateDaemonSet}, true
	case "horizontalpodautoscalers.autoscaling", "certificatesigningrequests.certificates.k8s.io", "apiservices.apiregistration.k8s.io",
		"volumeattachments.storage.k8s.io", "servicecidrs.networking.k8s.io", "resourceclaims.resource.k8s.io":
		return rules{status: true}, true
	case "networkpolicies.networking.k8s.io", "endpointslices.discovery.k8s.io", "priorityclasses.scheduling.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicybindings.admissionregistration.k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"ingressclasses.networking.k8s.io", "runtimeclasses.node.k8s.io":
		return rules{generation: true}, true
	}
	return rules{}, false
}

// PrepareForCreate prepares a new object for storage after admission: it resets the status, and sets the generation and
// resource-specific fields. metadata.name and uid must be set.
func PrepareForCreate(resource schema.GroupResource, obj map[string]any) {
	r, ok := rulesOf(resource)
	if !ok {
		return
	}
	metadata := nested.EnsureMap(obj, "metadata")
	if r.generation { // without it, kinds keep the client's value
		metadata["generation"] = int64(1)
	}
	if r.status && resource.Resource != "nodes" {
		obj["status"] = object{}
		if r.initial != nil {
			obj["status"] = deepCopy(r.initial)
		} else if empty := emptyStatus(resource); empty != nil {
			obj["status"] = empty
		}
	}
	if r.create != nil {
		r.create(obj)
	}
}

// emptyStatus returns the empty status of kinds whose status has required fields.
func emptyStatus(resource schema.GroupResource) object {
	switch resource.String() {
	case "replicasets.apps", "replicationcontrollers":
		return object{"replicas": int64(0)}
	case "statefulsets.apps":
		return object{"replicas": int64(0), "availableReplicas": int64(0)}
	case "daemonsets.apps":
		return object{"currentNumberScheduled": int64(0), "numberMisscheduled": int64(0), "desiredNumberScheduled": int64(0), "numberReady": int64(0)}
	case "ingresses.networking.k8s.io":
		return object{"loadBalancer": object{}}
	case "horizontalpodautoscalers.autoscaling":
		return object{"desiredReplicas": int64(0), "currentMetrics": nil}
	case "poddisruptionbudgets.policy":
		return object{"disruptionsAllowed": int64(0), "currentHealthy": int64(0), "desiredHealthy": int64(0), "expectedPods": int64(0)}
	}
	return nil
}

// KeepsStatus reports whether an update of a resource keeps the stored status. The status is then updated by the subresource.
func KeepsStatus(resource schema.GroupResource) bool {
	r, _ := rulesOf(resource)
	return r.status
}

// PrepareForUpdate prepares the replacement of old for storage. An update keeps the stored status. An update of subresource
// status keeps everything else. The generation counts changes of the spec.
func PrepareForUpdate(resource schema.GroupResource, subresource string, obj, old map[string]any) {
	r, ok := rulesOf(resource)
	if !ok {
		return
	}
	metadata := nested.EnsureMap(obj, "metadata")
	oldMetadata := nested.Map(old, "metadata")
	copyField(metadata, oldMetadata, "generation")
	if subresource == "status" {
		prepareStatus(resource, obj, old)
		return
	}
	if subresource == "finalize" {
		copyField(obj, old, "status")
		return
	}
	if r.status {
		copyField(obj, old, "status")
	}
	if r.update != nil {
		r.update(obj, old)
	}
	if r.generation && changed(resource, obj, old) {
		metadata["generation"] = nested.Int64(oldMetadata, "generation") + 1
	}
}

// prepareStatus resets all fields of obj except the status and the metadata that may be changed with it.
func prepareStatus(resource schema.GroupResource, obj, old object) {
	for name := range obj {
		if name != "status" && name != "metadata" && name != "apiVersion" && name != "kind" {
			delete(obj, name)
		}
	}
	for name := range old {
		if name != "status" && name != "metadata" && name != "apiVersion" && name != "kind" {
			copyField(obj, old, name)
		}
	}
	metadata := nested.Map(obj, "metadata")
	oldMetadata := nested.Map(old, "metadata")
	switch resource.String() {
	case "pods":
		copyField(metadata, oldMetadata, "ownerReferences")
		if status := nested.EnsureMap(obj, "status"); nested.String(status, "qosClass") == "" {
			copyField(status, nested.Map(old, "status"), "qosClass")
		}
	case "deployments.apps":
		copyField(metadata, oldMetadata, "labels")
	case "customresourcedefinitions.apiextensions.k8s.io":
		if len(nested.Slice(obj, "status", "storedVersions")) == 0 {
			addStoredVersion(obj)
		}
		for name := range metadata {
			if name != "managedFields" && name != "resourceVersion" {
				delete(metadata, name)
			}
		}
		for name := range oldMetadata {
			if name != "managedFields" && name != "resourceVersion" {
				copyField(metadata, oldMetadata, name)
			}
		}
	}
}

// changed reports whether an update increments the generation.
func changed(resource schema.GroupResource, obj, old object) bool {
	fields := []string{"spec"}
	switch resource.Resource {
	case "endpointslices":
		fields = []string{"addressType", "endpoints", "ports"}
	case "priorityclasses":
		fields = []string{"value", "globalDefault", "description", "preemptionPolicy"}
	case "mutatingwebhookconfigurations", "validatingwebhookconfigurations":
		fields = []string{"webhooks"}
	case "runtimeclasses":
		fields = []string{"handler", "overhead", "scheduling"}
	case "deployments":
		if !equality.Semantic.DeepEqual(nested.Map(obj, "metadata", "annotations"), nested.Map(old, "metadata", "annotations")) {
			return true
		}
	}
	return slices.ContainsFunc(fields, func(name string) bool { return !equality.Semantic.DeepEqual(obj[name], old[name]) })
}

func createPod(pod object) {
	spec := nested.EnsureMap(pod, "spec")
	status := object{"phase": "Pending", "qosClass": qosClass(spec)}
	if len(nested.Slice(spec, "schedulingGates")) > 0 {
		status["conditions"] = []any{object{
			"type": "PodScheduled", "status": "False", "lastProbeTime": nil, "lastTransitionTime": nil,
			"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	pod["status"] = status
}

func createNamespace(namespace object) {
	spec := nested.EnsureMap(namespace, "spec")
	if !slices.Contains(nested.Slice(spec, "finalizers"), any("kubernetes")) {
		spec["finalizers"] = append(nested.Slice(spec, "finalizers"), "kubernetes")
	}
}

func updateNamespace(namespace, old object) {
	if finalizers := nested.Map(old, "spec")["finalizers"]; finalizers != nil {
		nested.EnsureMap(namespace, "spec")["finalizers"] = deepCopy(finalizers)
	} else {
		delete(nested.EnsureMap(namespace, "spec"), "finalizers")
	}
}

func createClaim(claim object) {
	spec := nested.EnsureMap(claim, "spec")
	switch source, ref := nested.Map(spec, "dataSource"), nested.Map(spec, "dataSourceRef"); {
	case source != nil && ref == nil:
		spec["dataSourceRef"] = deepCopy(source)
	case ref != nil && source == nil && nested.String(ref, "namespace") == "":
		spec["dataSource"] = deepCopy(ref)
	}
}

func createDefinition(definition object) {
	definition["status"] = object{"acceptedNames": object{"plural": "", "kind": ""}, "conditions": nil, "storedVersions": []any{}}
	addStoredVersion(definition)
}

func updateDefinition(definition, _ object) { addStoredVersion(definition) }

// addStoredVersion adds the storage version to status.storedVersions. Versions leave the list by an update of the status only.
func addStoredVersion(definition object) {
	status := nested.EnsureMap(definition, "status")
	stored := slices.Clone(nested.Slice(status, "storedVersions"))
	for _, version := range nested.Maps(definition, "spec", "versions") {
		if nested.Bool(version, "storage") && !slices.Contains(stored, version["name"]) {
			stored = append(stored, version["name"])
			break
		}
	}
	status["storedVersions"] = stored
}

// createJob sets a job's selector and pod labels, unless manualSelector is set.
func createJob(job object) {
	spec := nested.EnsureMap(job, "spec")
	metadata := nested.EnsureMap(job, "metadata")
	if nested.Bool(spec, "manualSelector") {
		return
	}
	labels := nested.EnsureMap(spec, "template", "metadata", "labels")
	for _, label := range []string{"job-name", "batch.kubernetes.io/job-name"} {
		setIfAbsent(labels, label, metadata["name"])
	}
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		setIfAbsent(labels, label, metadata["uid"])
	}
	if len(nested.Map(metadata, "labels")) == 0 || reflect.ValueOf(metadata["labels"]).Pointer() == reflect.ValueOf(labels).Pointer() {
		metadata["labels"] = maps.Clone(labels) // set by defaulting
	}
	setIfAbsent(nested.EnsureMap(spec, "selector", "matchLabels"), "batch.kubernetes.io/controller-uid", metadata["uid"])
}

const templateGeneration = "deprecated.daemonset.template.generation"

func createDaemonSet(set object) {
	setIfAbsent(nested.EnsureMap(set, "metadata", "annotations"), templateGeneration, "1")
}

func updateDaemonSet(set, old object) {
	generation := nested.String(old, "metadata", "annotations", templateGeneration)
	if !equality.Semantic.DeepEqual(nested.Map(set, "spec")["template"], nested.Map(old, "spec")["template"]) {
		generation = increment(generation)
	}
	if generation != "" {
		nested.EnsureMap(set, "metadata", "annotations")[templateGeneration] = generation
	}
}

func increment(n string) string {
	i, _ := strconv.Atoi(n)
	return strconv.Itoa(i + 1)
}

// qosClass returns the QoS class of a pod from the CPU and memory requests and limits of its containers.
func qosClass(spec object) string {
	containers := append(nested.Maps(spec, "initContainers"), nested.Maps(spec, "containers")...)
	if resources := nested.Map(spec, "resources"); resources != nil { // pod-level resources take precedence
		containers = []object{{"resources": resources}}
	}
	specified := false
	guaranteed := true
	for _, container := range containers {
		requests := nested.Map(container, "resources", "requests")
		limits := nested.Map(container, "resources", "limits")
		for _, name := range []string{"cpu", "memory"} {
			request := quantity(requests[name])
			limit := quantity(limits[name])
			specified = specified || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || requests[name] != nil && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !specified:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

func quantity(value any) resource.Quantity {
	s, _ := value.(string)
	q, _ := resource.ParseQuantity(s)
	return q
}
