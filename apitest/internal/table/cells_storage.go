package table

import (
	"slices"
	"strings"
)

func storageCells(resource string) func(object) []any {
	switch resource {
	case "persistentvolumes":
		return printPersistentVolume
	case "persistentvolumeclaims":
		return printPersistentVolumeClaim
	case "storageclasses.storage.k8s.io":
		return printStorageClass
	case "volumeattributesclasses.storage.k8s.io":
		return func(o object) []any { return []any{o.name(), o.text("driverName"), o.age()} }
	case "csidrivers.storage.k8s.io":
		return printCSIDriver
	case "csinodes.storage.k8s.io":
		return func(o object) []any { return []any{o.name(), o.count("spec", "drivers"), o.age()} }
	case "volumeattachments.storage.k8s.io":
		return func(o object) []any {
			return []any{
				o.name(), o.text("spec", "attacher"), o.text("spec", "source", "persistentVolumeName"), o.text("spec", "nodeName"),
				o.flag("status", "attached"), o.age(),
			}
		}
	}
	return nil
}

func printPersistentVolume(o object) []any {
	claim := ""
	if o.has("spec", "claimRef") {
		claim = o.text("spec", "claimRef", "namespace") + "/" + o.text("spec", "claimRef", "name")
	}
	return []any{
		o.name(), o.quantity("spec", "capacity", "storage"), accessModes(o.texts("spec", "accessModes")),
		o.text("spec", "persistentVolumeReclaimPolicy"), volumePhase(o), claim, storageClass(o),
		o.textOr("<unset>", "spec", "volumeAttributesClassName"), o.text("status", "reason"), o.age(),
		o.textOr("<unset>", "spec", "volumeMode"),
	}
}

func printPersistentVolumeClaim(o object) []any {
	capacity := ""
	modes := ""
	if o.text("spec", "volumeName") != "" {
		capacity = o.quantity("status", "capacity", "storage")
		modes = accessModes(o.texts("status", "accessModes"))
	}
	return []any{
		o.name(), volumePhase(o), o.text("spec", "volumeName"), capacity, modes, storageClass(o),
		o.textOr("<unset>", "spec", "volumeAttributesClassName"), o.age(), o.textOr("<unset>", "spec", "volumeMode"),
	}
}

func volumePhase(o object) string {
	if o.isDeleted() {
		return "Terminating"
	}
	return o.text("status", "phase")
}

func storageClass(o object) string {
	return o.textOr(o.text("spec", "storageClassName"), "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
}

func accessModes(modes []string) string {
	var short []string
	for _, mode := range [][2]string{
		{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"},
	} {
		if slices.Contains(modes, mode[0]) {
			short = append(short, mode[1])
		}
	}
	return strings.Join(short, ",")
}

func printStorageClass(o object) []any {
	return []any{
		withDefault(o, "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
		o.text("provisioner"), o.textOr("Delete", "reclaimPolicy"), o.textOr("Immediate", "volumeBindingMode"),
		o.flag("allowVolumeExpansion"), o.age(),
	}
}

func printCSIDriver(o object) []any {
	tokens := "<unset>"
	if o.has("spec", "tokenRequests") {
		var audiences []string
		for _, request := range o.list("spec", "tokenRequests") {
			audiences = append(audiences, request.text("audience"))
		}
		tokens = strings.Join(audiences, ",")
	}
	modes := strings.Join(o.texts("spec", "volumeLifecycleModes"), ",")
	if modes == "" {
		modes = "<none>"
	}
	return []any{
		o.name(), !o.has("spec", "attachRequired") || o.flag("spec", "attachRequired"), o.flag("spec", "podInfoOnMount"), o.flag("spec", "storageCapacity"),
		tokens, o.flag("spec", "requiresRepublish"), modes, o.age(),
	}
}
