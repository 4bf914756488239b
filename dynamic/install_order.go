package dynamic

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/unstructured"
)

// dependsOn is the annotation with explicit dependencies, in the format of cli-utils, kpt and Config Sync: a comma-separated list
// of GROUP/KIND/NAME and GROUP/namespaces/NAMESPACE/KIND/NAME.
const dependsOn = "config.kubernetes.io/depends-on"

// InstallPlan is the order of a set of objects.
type InstallPlan struct {
	// Stages are all objects. The objects of a stage do not depend on each other and can be applied in parallel, once the previous
	// stages are applied. Deletion goes backwards.
	Stages [][]*unstructured.Object
	// Dependencies maps an object to the objects of the set that it depends on.
	Dependencies map[*unstructured.Object][]*unstructured.Object
}

// InstallOrder returns the stages of a set of objects, and their dependencies. The order within a stage is that of objects.
//
// The stages are: Namespaces and CustomResourceDefinitions; kinds that requests are checked against or that others need to exist,
// such as ServiceAccount, Role, StorageClass and PriorityClass; kinds that workloads refer to, such as Secret, ConfigMap,
// RoleBinding, PersistentVolumeClaim and Service; workloads, custom resources and all further kinds; webhooks, admission policies
// and APIServices. Dependencies take precedence and may add stages: an object comes after its Namespace, the
// CustomResourceDefinition or APIService of its kind, the objects in its annotation config.kubernetes.io/depends-on, and its owners
// (by UID, for objects read from a cluster).
//
// A dependency that is not among the objects is ignored: it is expected to exist. namespace is the namespace of namespaced objects
// that name none, for references to such objects. A cycle is an error that names the objects, and so is a malformed annotation.
func InstallOrder(objects []*unstructured.Object, namespace string) (*InstallPlan, error) {
	plan := &InstallPlan{Dependencies: map[*unstructured.Object][]*unstructured.Object{}}
	order := &installOrder{
		objects: objects, namespace: namespace, positions: make([]installPosition, len(objects)), found: plan.Dependencies,
	}
	order.index()
	for i := range objects {
		if err := order.visit(i); err != nil {
			return nil, fmt.Errorf("install order: %w", err)
		}
	}
	stages := map[installPosition][]*unstructured.Object{}
	for i, obj := range objects {
		position := order.positions[i]
		position.visit = visited
		stages[position] = append(stages[position], obj)
	}
	positions := make([]installPosition, 0, len(stages))
	for position := range stages {
		positions = append(positions, position)
	}
	sort.Slice(positions, func(i, j int) bool { return positions[i].compare(positions[j]) < 0 })
	for _, position := range positions {
		plan.Stages = append(plan.Stages, stages[position])
	}
	return plan, nil
}

// installReference names an object without its version.
type installReference struct {
	kind            schema.GroupKind
	namespace, name string
}

func (r installReference) String() string {
	name := r.name
	if r.namespace != "" {
		name = r.namespace + "/" + name
	}
	return printable(r.kind.String()) + " " + quoted(name)
}

// installPosition is a stage: the rank of a kind, and the number of dependencies in a row from there.
type installPosition struct {
	rank, depth int
	visit       visitState
}

func (p installPosition) compare(other installPosition) int {
	return cmp.Or(p.rank-other.rank, p.depth-other.depth)
}

type visitState int

const (
	unvisited visitState = iota
	visiting             // on the path of installOrder
	visited
)

type installOrder struct {
	objects   []*unstructured.Object
	namespace string

	byReference map[installReference]int
	byUID       map[types.UID]int
	definitions map[schema.GroupKind]int    // CustomResourceDefinitions by their kind
	apiServices map[schema.GroupVersion]int // APIServices of aggregated API servers

	positions []installPosition
	found     map[*unstructured.Object][]*unstructured.Object // dependencies
	path      []int                                           // of visit
}

func (o *installOrder) index() {
	o.byReference = map[installReference]int{}
	o.byUID = map[types.UID]int{}
	o.definitions = map[schema.GroupKind]int{}
	o.apiServices = map[schema.GroupVersion]int{}
	for i, obj := range o.objects {
		reference := referenceTo(obj)
		o.byReference[reference] = i
		if uid := obj.GetUID(); uid != "" {
			o.byUID[uid] = i
		}
		if reference.namespace == "" && o.namespace != "" {
			reference.namespace = o.namespace
			if _, exists := o.byReference[reference]; !exists {
				o.byReference[reference] = i
			}
		}
		switch reference.kind.String() {
		case "CustomResourceDefinition.apiextensions.k8s.io":
			o.definitions[definedKind(obj)] = i
		case "APIService.apiregistration.k8s.io":
			group, _, _ := unstructured.Get[string](obj, "spec", "group") // the API server reports a wrong type
			version, _, _ := unstructured.Get[string](obj, "spec", "version")
			_, isAggregated, _ := unstructured.Get[any](obj, "spec", "service")
			if isAggregated { // the API server itself serves the remaining groups, such as APIServices
				o.apiServices[schema.GroupVersion{Group: group, Version: version}] = i
			}
		}
	}
}

func referenceTo(obj *unstructured.Object) installReference {
	return installReference{kind: obj.GroupVersionKind().GroupKind(), namespace: obj.GetNamespace(), name: obj.GetName()}
}

// visit sets the position of an object and of its dependencies.
func (o *installOrder) visit(i int) error {
	switch o.positions[i].visit {
	case visited:
		return nil
	case visiting:
		return o.cycleError(i)
	case unvisited:
	}
	o.positions[i].visit = visiting
	o.path = append(o.path, i)
	dependencies, err := o.dependencies(i)
	if err != nil {
		return err
	}
	position := installPosition{rank: installRank(o.objects[i].GroupVersionKind().GroupKind())}
	for _, dependency := range dependencies {
		if err := o.visit(dependency); err != nil {
			return err
		}
		o.found[o.objects[i]] = append(o.found[o.objects[i]], o.objects[dependency])
		if after := o.positions[dependency]; position.compare(after) <= 0 {
			position.rank = after.rank
			position.depth = after.depth + 1
		}
	}
	position.visit = visited
	o.positions[i] = position
	o.path = o.path[:len(o.path)-1]
	return nil
}

// cycleError returns the error of a dependency on an object that is on the path.
func (o *installOrder) cycleError(i int) error {
	var names []string
	for _, on := range append(o.path[slices.Index(o.path, i):], i) {
		names = append(names, referenceTo(o.objects[on]).String())
	}
	return fmt.Errorf("dependency cycle: %s", strings.Join(names, " → "))
}

// dependencies returns the indexes of the objects that must be in front of an object.
func (o *installOrder) dependencies(i int) (all []int, err error) {
	obj := o.objects[i]
	references, err := explicitDependencies(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: annotation %s: %w", referenceTo(obj), dependsOn, err)
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		references = append(references, installReference{kind: schema.GroupKind{Kind: "Namespace"}, name: namespace})
	}
	for _, reference := range references {
		if dependency, found := o.byReference[reference]; found {
			all = append(all, dependency)
		}
	}
	for _, owner := range obj.GetOwnerReferences() {
		if dependency, found := o.byUID[owner.UID]; found {
			all = append(all, dependency)
		}
	}
	if definition, found := o.definitions[obj.GroupVersionKind().GroupKind()]; found {
		all = append(all, definition)
	}
	if apiService, found := o.apiServices[obj.GroupVersionKind().GroupVersion()]; found {
		all = append(all, apiService)
	}
	return all, nil
}

// explicitDependencies returns the references in the annotation dependsOn. As in cli-utils, a repeated reference is an error.
func explicitDependencies(obj *unstructured.Object) (all []installReference, err error) {
	text, found := obj.GetAnnotations()[dependsOn]
	if !found {
		return nil, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		fields := strings.Split(one, "/")
		reference := installReference{}
		switch {
		case len(fields) == 3:
			reference.kind = schema.GroupKind{Group: fields[0], Kind: fields[1]}
			reference.name = fields[2]
		case len(fields) == 5 && fields[1] == "namespaces":
			reference.kind = schema.GroupKind{Group: fields[0], Kind: fields[3]}
			reference.namespace = fields[2]
			reference.name = fields[4]
		default:
			return nil, fmt.Errorf("%s is neither GROUP/KIND/NAME nor GROUP/namespaces/NAMESPACE/KIND/NAME", quoted(one))
		}
		if slices.Contains(all, reference) {
			return nil, fmt.Errorf("%s occurs twice", quoted(one))
		}
		all = append(all, reference)
	}
	return all, nil
}

// The ranks of kinds, in the order of InstallOrder.
const (
	rankScope = iota
	rankPrerequisite
	rankReferenced
	rankOther
	rankInterceptor
)

func installRank(kind schema.GroupKind) int {
	switch kind.String() {
	case "Namespace", "CustomResourceDefinition.apiextensions.k8s.io":
		return rankScope
	case "ResourceQuota", "LimitRange", "ServiceAccount", "Role.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io",
		"PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io", "StorageClass.storage.k8s.io", "CSIDriver.storage.k8s.io",
		"VolumeAttributesClass.storage.k8s.io", "IngressClass.networking.k8s.io", "DeviceClass.resource.k8s.io":
		return rankPrerequisite
	case "Secret", "ConfigMap", "RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"PersistentVolume", "PersistentVolumeClaim", "NetworkPolicy.networking.k8s.io", "Service",
		"ResourceClaim.resource.k8s.io", "ResourceClaimTemplate.resource.k8s.io":
		return rankReferenced
	case "APIService.apiregistration.k8s.io":
		return rankInterceptor
	default:
		if kind.Group == "admissionregistration.k8s.io" {
			return rankInterceptor
		}
		return rankOther
	}
}
