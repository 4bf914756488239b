package shard_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/shard"
)

func ExampleSplit() {
	for i, selector := range shard.Split(shard.Namespace, 3) {
		fmt.Println(i, selector)
		for _, namespace := range []string{"db", "web", "prod", "blog"} {
			if selector.Matches(namespace, types.UID("")) {
				fmt.Println("  has", namespace)
			}
		}
	}
	// Output:
	// 0 shardRange(object.metadata.namespace, '0x0000000000000000', '0x5555555555555556')
	//   has db
	// 1 shardRange(object.metadata.namespace, '0x5555555555555556', '0xaaaaaaaaaaaaaaab')
	//   has web
	//   has prod
	// 2 shardRange(object.metadata.namespace, '0xaaaaaaaaaaaaaaab', '0x10000000000000000')
	//   has blog
}
