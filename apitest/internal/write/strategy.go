package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// strategy has the properties of a kind for its writes. The zero value fits most built-in kinds.
type strategy struct {
	createOnUpdate bool // an update of a missing object creates it
	needsVersion   bool // an update without a resourceVersion is invalid
	returnsDeleted bool // a deletion returns the object instead of a Status
	finalizers     finalizerCheck
	commonMetadata bool // metadata is checked by the rules of all kinds only
	validateName   validation.ValidateNameFunc
	statusResets   [][]string // fields reset by an update of the status; nil: spec
}

// finalizerCheck is when finalizers without a domain are rejected.
type finalizerCheck int

const (
	alwaysChecked finalizerCheck = iota
	checkedWithoutStatus
	neverChecked
)

var customStrategy = &strategy{
	needsVersion: true,
	validateName: validation.NameIsDNSSubdomain,
	statusResets: [][]string{{"metadata"}, {"spec"}},
}

// The groups of built-in kinds.
const (
	admissionGroup    = "admissionregistration.k8s.io"
	certificatesGroup = "certificates.k8s.io"
	coordinationGroup = "coordination.k8s.io"
	flowGroup         = "flowcontrol.apiserver.k8s.io"
	networkingGroup   = "networking.k8s.io"
	policyGroup       = "policy"
	rbacGroup         = "rbac.authorization.k8s.io"
	resourceGroup     = "resource.k8s.io"
	storageGroup      = "storage.k8s.io"
)

var admissionKinds = []string{"validatingadmissionpolicies", "mutatingadmissionpolicies", "mutatingwebhookconfigurations",
	"validatingwebhookconfigurations", "mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"}

type groupResource = schema.GroupResource

// builtinStrategies returns the strategies of built-in kinds by group and plural.
var builtinStrategies = sync.OnceValue(func() map[groupResource]*strategy {
	all := map[groupResource]*strategy{}
	of := func(group string, plurals []string, change func(*strategy)) {
		for _, plural := range plurals {
			key := groupResource{Group: group, Resource: plural}
			if all[key] == nil {
				all[key] = &strategy{}
			}
			change(all[key])
		}
	}
	createOnUpdate := func(s *strategy) { s.createOnUpdate = true }
	of("", []string{"limitranges", "events", "services", "endpoints"}, createOnUpdate)
	of("events.k8s.io", []string{"events"}, createOnUpdate)
	of(coordinationGroup, []string{"leases", "leasecandidates"}, createOnUpdate)
	of(rbacGroup, []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, createOnUpdate)
	of("node.k8s.io", []string{"runtimeclasses"}, createOnUpdate)

	needsVersion := func(s *strategy) { s.needsVersion = true }
	of(definitionGroup, []string{"customresourcedefinitions"}, needsVersion)
	of("apiregistration.k8s.io", []string{"apiservices"}, needsVersion)
	of(certificatesGroup, []string{"podcertificaterequests", "clustertrustbundles"}, needsVersion)
	of("node.k8s.io", []string{"runtimeclasses"}, needsVersion)
	of("storagemigration.k8s.io", []string{"storageversionmigrations"}, needsVersion)
	of(policyGroup, []string{"poddisruptionbudgets"}, needsVersion)
	of("internal.apiserver.k8s.io", []string{"storageversions"}, needsVersion)
	of(storageGroup, []string{"csidrivers", "csistoragecapacities", "volumeattachments", "csinodes"}, needsVersion)
	of(coordinationGroup, []string{"leases", "leasecandidates"}, needsVersion)
	of(admissionGroup, admissionKinds, needsVersion)

	returnsDeleted := func(s *strategy) { s.returnsDeleted = true }
	of("", []string{"resourcequotas", "persistentvolumes", "serviceaccounts", "persistentvolumeclaims", "namespaces", "pods",
		"services", "podtemplates"}, returnsDeleted)
	of(resourceGroup, []string{"resourceclaimtemplates", "resourceslices", "resourceclaims", "deviceclasses",
		"devicetaintrules"}, returnsDeleted)
	of(storageGroup, []string{"csidrivers", "storageclasses", "volumeattachments", "csinodes", "volumeattributesclasses"}, returnsDeleted)

	of("apps", []string{"deployments"}, func(s *strategy) {
		s.statusResets = [][]string{{"spec"}, {"metadata", "labels"}}
	})
	of("", []string{"pods"}, func(s *strategy) {
		s.statusResets = [][]string{{"spec"}, {"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}}
	})
	resetsMetadata := func(s *strategy) { s.statusResets = [][]string{{"metadata"}, {"spec"}} }
	of(storageGroup, []string{"volumeattachments"}, resetsMetadata)
	of(flowGroup, []string{"flowschemas", "prioritylevelconfigurations"}, resetsMetadata)
	of(networkingGroup, []string{"servicecidrs"}, resetsMetadata)
	of(resourceGroup, []string{"resourceclaims"}, resetsMetadata)

	label := func(s *strategy) { s.validateName = validation.NameIsDNSLabel }
	of("", []string{"namespaces", "services"}, label)
	of("apps", []string{"statefulsets"}, label)
	segment := func(s *strategy) { s.validateName = validatePathSegment }
	of(rbacGroup, []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, segment)
	of("", []string{"events"}, segment)
	of("events.k8s.io", []string{"events"}, segment)
	of(policyGroup, []string{"poddisruptionbudgets"}, segment)

	of("", []string{"events"}, func(s *strategy) { s.commonMetadata = true })
	of(policyGroup, []string{"poddisruptionbudgets"}, func(s *strategy) { s.commonMetadata = true })
	notWithStatus := func(s *strategy) { s.finalizers = checkedWithoutStatus }
	of("batch", []string{"cronjobs"}, notWithStatus)
	of(flowGroup, []string{"flowschemas", "prioritylevelconfigurations"}, notWithStatus)
	anyFinalizer := func(s *strategy) { s.finalizers = neverChecked }
	of(coordinationGroup, []string{"leases", "leasecandidates"}, anyFinalizer)
	of(admissionGroup, admissionKinds, anyFinalizer)
	of(definitionGroup, []string{"customresourcedefinitions"}, anyFinalizer)
	of("apiregistration.k8s.io", []string{"apiservices"}, anyFinalizer)
	of("node.k8s.io", []string{"runtimeclasses"}, anyFinalizer)
	return all
})

func builtinStrategy(group, plural string) *strategy {
	if s := builtinStrategies()[groupResource{Group: group, Resource: plural}]; s != nil {
		return s
	}
	return &strategy{}
}

// nameRule returns the validation of names.
func (s *strategy) nameRule() validation.ValidateNameFunc {
	if s.validateName == nil {
		return validation.NameIsDNSSubdomain
	}
	return s.validateName
}
