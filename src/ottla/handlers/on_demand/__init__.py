"""What is made when somebody first asks for it: topics, groups' places, the offsets topic, producer ids."""
