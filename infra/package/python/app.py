"""A CDK app in Python with the package `tidegraph-cdk`: `app.py OUT BUNDLE` writes its templates into OUT."""

import sys

from aws_cdk import App, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from tidegraph_cdk import BackupProps, GivenLogProps, GraphProps, GraphService, GraphState
from tidegraph_cdk import NodesProps, ServiceStack, StateStack, WorkersProps

out, bundle = sys.argv[1:]
app = App(outdir=out, analytics_reporting=False)
state = StateStack(app, "State", name="example", graph="people").state
ServiceStack(
    app,
    "Service",
    state=state,
    bundle=bundle,
    workers=WorkersProps(count=2),
    nodes=NodesProps(count=3, join_patience=Duration.minutes(20)),
    backup=BackupProps(every=Duration.days(1)),
)

# Constructs in a stack of the app's own, and what they made.
own = Stack(app, "Own")
given = GraphState(own, "State", name="own", log=GivenLogProps(addresses="b-1.example.com:9094", copies=1))
service = GraphService(own, "Service", state=given, bundle=bundle, secret_rotation=False)
client = ec2.Instance(
    own,
    "Client",
    vpc=given.network.vpc,
    vpc_subnets=ec2.SubnetSelection(subnets=given.network.subnets),
    instance_type=ec2.InstanceType("t4g.nano"),
    machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64),
)
client.add_security_group(service.workers.clients)
service.grant_query(iam.Role(own, "Reader", assumed_by=iam.AccountRootPrincipal()))
service.grant_read(iam.Role(own, "ReaderOfOne", assumed_by=iam.AccountRootPrincipal()), "default")
print(service.nodes.group_name)


def refusal(**props):
    """Returns the message with which settings of the service are refused."""
    refused = Stack(app, "Refused")
    try:
        GraphService(refused, "Service", state=given, bundle=bundle, **props)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    finally:
        app.node.try_remove_child("Refused")


print(refusal(partitions=3))
print(refusal(nodes=NodesProps(instance_type="m7g.large")))
orders = GraphProps(name="orders", partitions=16, share=0.25)
print(refusal(graphs=[orders, GraphProps(name="orders")]))
print(refusal(secret_rotation=True))
app.synth()
