"""The live runtime: the same cores in Ray actors, in real time. Only modules of this folder
import Ray."""
