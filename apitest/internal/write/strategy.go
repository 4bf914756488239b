package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// strategy are the properties of a kind that its writes depend on. The zero value is that of most built-in kinds.
type strategy struct {
	createOnUpdate bool // an update of what does not exist creates it
	needsVersion   bool // an update without a resourceVersion is invalid
	returnsDeleted bool // a deletion answers with the object instead of a Status
	revalidates    bool // an update validates the metadata as a creation does, too
	validateName   validation.ValidateNameFunc
	statusResets   [][]string // fields that an update of the status must not change; nil: the spec
}

var customStrategy = &strategy{
	needsVersion: true,
	validateName: validation.NameIsDNSSubdomain,
	statusResets: [][]string{{"metadata"}, {"spec"}},
}

type groupResource = schema.GroupResource

// builtinStrategies returns the strategies of built-in kinds by group and plural.
var builtinStrategies = sync.OnceValue(func() map[groupResource]*strategy {
	const (
		admissionGroup    = "admissionregistration.k8s.io"
		certificatesGroup = "certificates.k8s.io"
		coordinationGroup = "coordination.k8s.io"
		crdGroup          = "apiextensions.k8s.io"
		flowGroup         = "flowcontrol.apiserver.k8s.io"
		networkingGroup   = "networking.k8s.io"
		policyGroup       = "policy"
		rbacGroup         = "rbac.authorization.k8s.io"
		resourceGroup     = "resource.k8s.io"
		storageGroup      = "storage.k8s.io"
	)
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
	of(crdGroup, []string{"customresourcedefinitions"}, needsVersion)
	of("apiregistration.k8s.io", []string{"apiservices"}, needsVersion)
	of(certificatesGroup, []string{"podcertificaterequests", "clustertrustbundles"}, needsVersion)
	of("node.k8s.io", []string{"runtimeclasses"}, needsVersion)
	of("storagemigration.k8s.io", []string{"storageversionmigrations"}, needsVersion)
	of(policyGroup, []string{"poddisruptionbudgets"}, needsVersion)
	of("internal.apiserver.k8s.io", []string{"storageversions"}, needsVersion)
	of(storageGroup, []string{"csidrivers", "csistoragecapacities", "volumeattachments", "csinodes"}, needsVersion)
	of(coordinationGroup, []string{"leases", "leasecandidates"}, needsVersion)
	of(admissionGroup, []string{"validatingadmissionpolicies", "mutatingadmissionpolicies", "mutatingwebhookconfigurations",
		"validatingwebhookconfigurations", "mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"}, needsVersion)

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
	revalidates := func(s *strategy) { s.revalidates = true }
	of("", []string{"configmaps", "namespaces", "secrets", "serviceaccounts", "services"}, revalidates)
	of(rbacGroup, []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, revalidates)
	of(networkingGroup, []string{"ingresses"}, revalidates)
	return all
})

func builtinStrategy(group, plural string) *strategy {
	if s := builtinStrategies()[groupResource{Group: group, Resource: plural}]; s != nil {
		return s
	}
	return &strategy{}
}

// nameRule is the rule for names of the kind's objects.
func (s *strategy) nameRule() validation.ValidateNameFunc {
	if s.validateName == nil {
		return validation.NameIsDNSSubdomain
	}
	return s.validateName
}
