package command

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/internal/fieldowner"
	"github.com/anykind/anykind/unstructured"
)

// LastApplied is the annotation with the applied manifest. kubectl apply computes its changes from it.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// SaveConfig sets the annotation LastApplied to the object.
func SaveConfig(obj *unstructured.Object) error {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	obj.SetAnnotations(annotations) // the configuration has the empty field, too, as in kubectl
	text, err := Configuration(obj)
	if err != nil {
		return err
	}
	annotations[LastApplied] = text
	obj.SetAnnotations(annotations)
	return nil
}

// Configuration returns the object without the annotation as JSON.
func Configuration(obj *unstructured.Object) (string, error) {
	plain := obj.DeepCopy()
	if _, err := unstructured.Delete(plain, "metadata", "annotations", LastApplied); err != nil {
		return "", err
	}
	data, err := json.Marshal(plain.Object)
	return string(data) + "\n", err
}

// kubectlManager is the manager of kubectl apply --server-side.
const kubectlManager = "kubectl"

// IsDefaultManager reports whether manager is that of the program or of kubectl, not a further one of --field-manager.
func (s *State) IsDefaultManager(manager string) bool {
	return manager == s.Connection.FieldManager || manager == kubectlManager
}

// KubectlManagers returns a selector of the entries of kubectl apply: managers whose Update entry has the annotation LastApplied, and
// with serverSide also the manager of kubectl apply --server-side.
func KubectlManagers(live *unstructured.Object, serverSide bool) func(metav1.ManagedFieldsEntry) bool {
	isClientSide := applyset.Managers(slices.Collect(maps.Keys(LastAppliedOwners(live, metav1.ManagedFieldsOperationUpdate)))...)
	isServerSide := applyset.Managers(kubectlManager)
	return func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			return isClientSide(entry)
		}
		return serverSide && isServerSide(entry)
	}
}

// LastAppliedOwners returns the managers of the annotation LastApplied with an operation.
func LastAppliedOwners(live *unstructured.Object, operation metav1.ManagedFieldsOperationType) map[string]bool {
	names := map[string]bool{}
	if _, exists := live.GetAnnotations()[LastApplied]; !exists {
		return names
	}
	owners, err := fieldowner.Owners(live, []string{"metadata", "annotations", LastApplied})
	if err != nil {
		return names // managedFields that cannot be decoded have no owner to take over
	}
	for _, owner := range owners {
		if owner.Operation == string(operation) {
			names[owner.Manager] = true
		}
	}
	return names
}
