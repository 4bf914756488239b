package clustercopy

import "k8s.io/apimachinery/pkg/runtime/schema"

// Options select the objects of From. nil and the zero value select the objects of all resources that can be listed.
//
// Some objects are always copied, because the decisions of a server depend on them: definitions, namespaces, RBAC, admission policies
// and bindings, webhook configurations, API services, classes of priority, storage, runtime and ingress, quotas and limit ranges.
type Options struct {
	// Resources are names of resources as for kubectl: "deploy", "pods,services", "widgets.shop.example.com", "all". nil selects all
	// resources except Events and Leases. Both change all the time, and with the cluster's Leases no controller leads in a copy.
	// Name them to copy them. An empty list selects nothing further.
	Resources []string
	// Namespaces are the namespaces of namespaced objects, nil for all. The user needs no rights in other namespaces.
	Namespaces []string
	// LabelSelector selects objects. It does not apply to the resources that are always copied.
	LabelSelector string
	// SecretData keeps the values of Secrets. By default they are empty, and only their keys are copied.
	SecretData bool
	// OnProgress is called after each page of a list, by one goroutine at a time.
	OnProgress func(Progress)
}

// Progress is the state of From.
type Progress struct {
	Resource schema.GroupVersionResource // of the last page
	Objects  int                         // received so far
	Lists    int                         // finished so far
	AllLists int                         // the number of lists known so far
}

// always are the resources that are always copied, by group.
var always = map[schema.GroupResource]bool{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
	{Resource: "namespaces"}:                                                               true,
	{Resource: "resourcequotas"}:                                                           true,
	{Resource: "limitranges"}:                                                              true,
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:                                true,
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:                         true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:                         true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:                  true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     true,
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:                              true,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:                                  true,
	{Group: "node.k8s.io", Resource: "runtimeclasses"}:                                     true,
	{Group: "networking.k8s.io", Resource: "ingressclasses"}:                               true,
}

// byNameOnly are the resources that are copied only if Options.Resources names them, and why.
var byNameOnly = map[schema.GroupResource]string{
	{Resource: "events"}:                               "events are copied only if they are named",
	{Group: "events.k8s.io", Resource: "events"}:       "events are copied only if they are named",
	{Group: "coordination.k8s.io", Resource: "leases"}: "leases are copied only if they are named",
	{Resource: "componentstatuses"}:                    "component statuses are computed and not stored",
}
