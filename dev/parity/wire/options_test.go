package wire_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allListOptions returns the options of a list, without those of allWatchOptions and furtherPage.
func allListOptions() metav1.ListOptions {
	timeout := int64(30)
	return metav1.ListOptions{
		LabelSelector: "app=web,tier!=db", FieldSelector: "metadata.name=web", ShardSelector: "a b", Limit: 7, ResourceVersion: "5",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: &timeout,
	}
}

// allWatchOptions are those of a watch.
func allWatchOptions() metav1.ListOptions {
	opts := allListOptions()
	yes := true
	opts.Limit = 0
	opts.AllowWatchBookmarks = true
	opts.SendInitialEvents = &yes
	return opts
}

// furtherPage returns the options of any page but the first.
func furtherPage() metav1.ListOptions {
	return metav1.ListOptions{Limit: 500, Continue: "eyJ2IjoibWV0YSJ9+/="}
}

func allGetOptions() metav1.GetOptions { return metav1.GetOptions{ResourceVersion: "0"} }

func allCreateOptions() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "me", FieldValidation: metav1.FieldValidationStrict}
}

func allUpdateOptions() metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "me", FieldValidation: metav1.FieldValidationWarn}
}

func allPatchOptions() metav1.PatchOptions {
	yes := true
	return metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, Force: &yes, FieldManager: "me", FieldValidation: metav1.FieldValidationIgnore}
}

func allApplyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, Force: true, FieldManager: "me"}
}

func allDeleteOptions() metav1.DeleteOptions {
	grace := int64(0)
	uid := metav1.ObjectMeta{UID: "u-1"}.UID
	version := "7"
	foreground := metav1.DeletePropagationForeground
	yes := true
	return metav1.DeleteOptions{
		GracePeriodSeconds: &grace, PropagationPolicy: &foreground, DryRun: []string{metav1.DryRunAll},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		IgnoreStoreReadErrorWithClusterBreakingPotential: &yes,
	}
}

// orphaningAsOfOld is the deprecated option that excludes a propagation policy.
func orphaningAsOfOld() metav1.DeleteOptions {
	yes := true
	return metav1.DeleteOptions{OrphanDependents: &yes} //nolint:staticcheck // servers take it still
}

// TestWireOptions_AreComplete finds options of a newer apimachinery that are not compared yet.
func TestWireOptions_AreComplete(t *testing.T) {
	for _, same := range [][]any{
		{allListOptions(), allWatchOptions(), furtherPage(), metav1.ListOptions{Watch: true}}, // which Watch sets itself
		{allGetOptions()}, {allCreateOptions()}, {allUpdateOptions()}, {allPatchOptions()}, {allApplyOptions()},
		{allDeleteOptions(), orphaningAsOfOld()},
	} {
		compared := map[string]bool{"TypeMeta": true} // which is no option
		for _, opts := range same {
			value := reflect.ValueOf(opts)
			for i := range value.NumField() {
				name := value.Type().Field(i).Name
				compared[name] = compared[name] || !value.Field(i).IsZero()
			}
		}
		for name, is := range compared {
			assert.True(t, is, "%T.%s is in no call", same[0], name)
		}
	}
}
